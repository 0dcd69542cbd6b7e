use super::{check, told};

#[test]
fn factors_are_those_that_define_the_units() {
    check(&[
        ("1 mi in m", "1609.344 m"),
        ("1 in to cm", "2.54 cm"),
        ("1 yd to ft", "3 ft"),
        ("1 nmi in km", "1.852 km"),
        ("1 ly in km", "9460730472580.8 km"),
        ("1 au in m", "149597870700 m"),
        ("1 acre in m^2", "4046.8564224 m^2"),
        ("1 ha to m²", "10000 m^2"),
        ("1 mi^2 in acre", "640 acre"),
        ("1 km2 in ha", "100 ha"),
        ("1 sqft to in^2", "144 in^2"),
        ("1 gal to L", "3.785411784 L"),
        ("1 gal to cup", "16 cup"),
        ("1 m3 in l", "1000 L"),
        ("1 cup in mL", "236.5882365 mL"),
        ("1 tbsp to tsp", "3 tsp"),
        ("1 floz in ml", "29.5735295625 mL"),
        ("1 impgal to litres", "4.54609 L"),
        ("1 lb in g", "453.59237 g"),
        ("1 lb to oz", "16 oz"),
        ("1 st in lb", "14 lb"),
        ("2.5 t in kg", "2500 kg"),
        ("1 wk in h", "168 h"),
        ("1 year in days", "365.25 d"),
        ("90 min to h", "1.5 h"),
        ("1 kn to km/h", "1.852 km/h"),
        ("1 mph in m/s", "0.44704 m/s"),
        ("1 lbf to N", "4.4482216152605 N"),
        ("1 kWh in MJ", "3.6 MJ"),
        ("1 kcal in J", "4184 J"),
        ("1 BTU in J", "1055.05585262 J"),
        ("1 eV in J", "1.602176634e-19 J"),
        ("1 hp in W", "745.69987158227022 W"),
        ("1 PS in W", "735.49875 W"),
        ("1 atm in kPa", "101.325 kPa"),
        ("1013.25 hPa in bar", "1.01325 bar"),
        ("760 Torr to atm", "1 atm"),
        ("1 mmHg in Pa", "133.322387415 Pa"),
        ("1 psi in Pa", "~6894.757293168361336722673445346891 Pa"),
        ("3 km + 200 m in mi", "~1.988387815159468702775789389962618 mi"),
        ("1 turn in deg", "360 deg"),
        ("180 deg in rad", "~3.141592653589793238462643383279503 rad"),
    ]);
}

#[test]
fn data_has_decimal_and_binary_prefixes() {
    check(&[
        ("1 GB in bytes", "1000000000 B"),
        ("1 GiB in B", "1073741824 B"),
        ("1 MiB in KiB", "1024 KiB"),
        ("1 KB to B", "1000 B"),
        ("1 B in bit", "8 bit"),
        ("100 Mbps in MB/s", "12.5 MB/s"),
        ("100 Mbit/s in MB/s", "12.5 MB/s"),
        ("1 TB in GiB", "931.322574615478515625 GiB"),
        ("10 gigabytes / (100 megabits / second) in min", "~13.33333333333333333333333333333333 min"),
        ("3 Mb in kB", "375 kB"),
    ]);
}

#[test]
fn temperatures_have_a_beginning_of_their_own() {
    check(&[
        ("32 °F to °C", "0 °C"),
        ("212 F in C", "100 °C"),
        ("-40 °C to °F", "-40 °F"),
        ("72 °F to °C", "~22.22222222222222222222222222222222 °C"),
        ("0 K in celsius", "-273.15 °C"),
        ("25 degC in K", "298.15 K"),
        ("20 °C + 5 K", "25 °C"),
        ("20 °C + 9 °R", "25 °C"),
        ("50 °F - 9 °R", "41 °F"),
        ("30 °C - 20 °C", "10 K"),
        ("50 °F - 41 °F", "5 K"),
        ("491.67 °R to °C", "0 °C"),
    ]);
}

#[test]
fn units_are_calculated_with() {
    check(&[
        ("3 km + 200 m", "3.2 km"),
        ("200 m + 3 km", "3200 m"),
        ("10 km / 2 h", "5 km/h"),
        ("120 km / 60 km/h", "2 h"),
        ("60 mi/h * 30 min", "30 mi"),
        ("3 m * 4 m", "12 m^2"),
        ("3 km * 200 m", "0.6 km^2"),
        ("1 h / 30 min", "2"),
        ("5 N * 2 m in J", "10 J"),
        ("2 kW * 3 h to kWh", "6 kWh"),
        ("10 kg * 9.8 m/s^2 in N", "98 N"),
        ("(3 m)^2", "9 m^2"),
        ("3 m^2", "3 m^2"),
        ("2 m^(1+1)", "2 m^2"),
        ("50 Hz * 2 s", "100"),
        ("4186 J/(kg*K)", "4186 J/(kg*K)"),
        ("1 / (4 s)", "0.25 1/s"),
        ("1 / (4 s) in Hz", "0.25 Hz"),
        ("6 m / (2 m)", "3"),
        ("360 deg / 5", "72 deg"),
        ("5 m/s in km/h", "18 km/h"),
        ("5 meters per second to kph", "18 km/h"),
        ("100 km/h → m/s * 1", "~27.77777777777777777777777777777778 m/s"),
        ("(5 km in m) + 1 m", "5001 m"),
        ("1 + 20 deg * 0", "1"),
        ("9.81 m/s² * 2 s", "19.62 m/s"),
    ]);
}

#[test]
fn an_inch_is_told_from_a_conversion() {
    check(&[
        ("5 ft 11 in in cm", "180.34 cm"),
        ("5 ft 11 in", "~5.916666666666666666666666666666667 ft"),
        ("-5 ft 6 in", "-5.5 ft"),
        ("72 in in ft", "6 ft"),
        ("72 in to ft", "6 ft"),
        ("5 in * 3", "15 in"),
        ("1 ft in in", "12 in"),
        ("30 lbf/in^2 in psi", "30 psi"),
        ("2 h 30 min in min", "150 min"),
    ]);
}

#[test]
fn names_are_known_in_several_ways() {
    for name in ["km", "kilometer", "kilometers", "Kilometres", "KILOMETERS"] {
        assert_eq!(told(&format!("1 {name} in m")), "1000 m", "{name}");
    }
    for micro in ["µs", "μs", "us", "microseconds"] {
        assert_eq!(told(&format!("5 {micro}")), "5 µs");
    }
    check(&[("1 foot to inches", "12 in"), ("6 feet", "6 ft"), ("3 megabytes", "3 MB"), ("2 Ounces", "2 oz")]);
}
