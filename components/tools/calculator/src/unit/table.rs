//! The units. Factors are those that define the unit (the SI Brochure, and the international
//! yard and pound of 1959), so that they are exact.

use super::{Dimension, Prefixes};

/// What is measured.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Length,
    Area,
    Volume,
    Mass,
    Time,
    Frequency,
    Speed,
    Force,
    Energy,
    Power,
    Pressure,
    Temperature,
    Data,
    Rate,
    Angle,
    Ratio,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Area => "area",
            Self::Volume => "volume",
            Self::Mass => "mass",
            Self::Time => "time",
            Self::Frequency => "frequency",
            Self::Speed => "speed",
            Self::Force => "force",
            Self::Energy => "energy",
            Self::Power => "power",
            Self::Pressure => "pressure",
            Self::Temperature => "temperature",
            Self::Data => "data",
            Self::Rate => "data per time",
            Self::Angle => "angle",
            Self::Ratio => "ratio",
        }
    }

    pub(super) fn dimension(self) -> Dimension {
        match self {
            Self::Length => [1, 0, 0, 0, 0],
            Self::Area => [2, 0, 0, 0, 0],
            Self::Volume => [3, 0, 0, 0, 0],
            Self::Mass => [0, 1, 0, 0, 0],
            Self::Time => [0, 0, 1, 0, 0],
            Self::Frequency => [0, 0, -1, 0, 0],
            Self::Speed => [1, 0, -1, 0, 0],
            Self::Force => [1, 1, -2, 0, 0],
            Self::Energy => [2, 1, -2, 0, 0],
            Self::Power => [2, 1, -3, 0, 0],
            Self::Pressure => [-1, 1, -2, 0, 0],
            Self::Temperature => [0, 0, 0, 1, 0],
            Self::Data => [0, 0, 0, 0, 1],
            Self::Rate => [0, 0, -1, 0, 1],
            Self::Angle | Self::Ratio => [0; 5],
        }
    }
}

/// A unit without its prefixes.
pub(super) struct Row {
    pub(super) kind: Kind,
    /// The first one is told.
    pub(super) symbols: &'static [&'static str],
    /// In small letters; the plural with `s` goes without saying.
    pub(super) words: &'static [&'static str],
    pub(super) factor: &'static str,
    pub(super) prefixes: Prefixes,
    pub(super) offset: Option<&'static str>,
}

type Names = &'static [&'static str];

const fn row(kind: Kind, symbols: Names, words: Names, factor: &'static str) -> Row {
    Row { kind, symbols, words, factor, prefixes: Prefixes::None, offset: None }
}

const fn metric(kind: Kind, symbols: Names, words: Names, factor: &'static str) -> Row {
    Row { prefixes: Prefixes::Metric, ..row(kind, symbols, words, factor) }
}

const fn data(kind: Kind, symbols: Names, words: Names, factor: &'static str) -> Row {
    Row { prefixes: Prefixes::Data, ..row(kind, symbols, words, factor) }
}

const fn scale(symbols: Names, words: Names, factor: &'static str, offset: &'static str) -> Row {
    Row { offset: Some(offset), ..row(Kind::Temperature, symbols, words, factor) }
}

use Kind::{
    Angle, Area, Data, Energy, Force, Frequency, Length, Mass, Power, Pressure, Rate, Ratio, Speed, Temperature, Time,
    Volume,
};

pub(super) const ROWS: &[Row] = &[
    metric(Length, &["m"], &["meter", "metre"], "1"),
    row(Length, &["in"], &["inch", "inches"], "0.0254"),
    row(Length, &["ft"], &["foot", "feet"], "0.3048"),
    row(Length, &["yd"], &["yard"], "0.9144"),
    row(Length, &["mi"], &["mile"], "1609.344"),
    row(Length, &["nmi"], &["nauticalmile"], "1852"),
    row(Length, &["au"], &["astronomicalunit"], "149597870700"),
    // 365.25 days of light.
    row(Length, &["ly"], &["lightyear"], "9460730472580800"),
    row(Area, &["ha"], &["hectare"], "10000"),
    row(Area, &["acre"], &["ac"], "4046.8564224"),
    row(Area, &["sqft"], &[], "0.3048*0.3048"),
    metric(Volume, &["L", "l"], &["liter", "litre"], "0.001"),
    // Those of the United States, of which the gallon is 231 cubic inches.
    row(Volume, &["gal"], &["gallon"], "0.003785411784"),
    row(Volume, &["qt"], &["quart"], "0.003785411784/4"),
    row(Volume, &["pt"], &["pint"], "0.003785411784/8"),
    row(Volume, &["cup"], &[], "0.003785411784/16"),
    row(Volume, &["floz"], &["fluidounce"], "0.003785411784/128"),
    row(Volume, &["tbsp"], &["tablespoon"], "0.003785411784/256"),
    row(Volume, &["tsp"], &["teaspoon"], "0.003785411784/768"),
    row(Volume, &["impgal"], &["imperialgallon"], "0.00454609"),
    row(Volume, &["imppt"], &["imperialpint"], "0.00454609/8"),
    metric(Mass, &["g"], &["gram", "gramme"], "0.001"),
    row(Mass, &["t"], &["tonne"], "1000"),
    row(Mass, &["lb"], &["lbs", "pound"], "0.45359237"),
    row(Mass, &["oz"], &["ounce"], "0.45359237/16"),
    row(Mass, &["st"], &["stone"], "0.45359237*14"),
    row(Mass, &["shortton"], &[], "0.45359237*2000"),
    row(Mass, &["longton"], &[], "0.45359237*2240"),
    metric(Time, &["s", "sec"], &["second"], "1"),
    row(Time, &["min"], &["minute"], "60"),
    row(Time, &["h", "hr"], &["hrs", "hour"], "3600"),
    row(Time, &["d"], &["day"], "86400"),
    row(Time, &["wk"], &["week"], "604800"),
    // The Julian year of 365.25 days.
    row(Time, &["yr"], &["year"], "31557600"),
    metric(Frequency, &["Hz"], &["hertz"], "1"),
    row(Speed, &["km/h", "kmh", "kph"], &[], "1/3.6"),
    row(Speed, &["mph"], &[], "0.44704"),
    row(Speed, &["kn"], &["knot"], "1852/3600"),
    metric(Force, &["N"], &["newton"], "1"),
    row(Force, &["lbf"], &[], "0.45359237*9.80665"),
    row(Force, &["kgf"], &[], "9.80665"),
    metric(Energy, &["J"], &["joule"], "1"),
    metric(Energy, &["Wh"], &["watthour"], "3600"),
    metric(Energy, &["cal"], &["calorie"], "4.184"),
    metric(Energy, &["eV"], &["electronvolt"], "1.602176634/10000000000000000000"),
    // That of the International Table, of which all the others are defined.
    row(Energy, &["BTU", "Btu"], &[], "1055.05585262"),
    metric(Power, &["W"], &["watt"], "1"),
    row(Power, &["hp"], &["horsepower"], "550*0.3048*0.45359237*9.80665"),
    row(Power, &["PS"], &[], "75*9.80665"),
    metric(Pressure, &["Pa"], &["pascal"], "1"),
    metric(Pressure, &["bar"], &[], "100000"),
    row(Pressure, &["atm"], &["atmosphere"], "101325"),
    row(Pressure, &["psi"], &[], "0.45359237*9.80665/0.0254/0.0254"),
    row(Pressure, &["mmHg"], &[], "133.322387415"),
    row(Pressure, &["Torr"], &["torr"], "101325/760"),
    row(Temperature, &["K"], &["kelvin"], "1"),
    row(Temperature, &["°R", "degR"], &["rankine"], "5/9"),
    scale(&["°C", "degC", "C"], &["celsius", "centigrade"], "1", "273.15"),
    scale(&["°F", "degF", "F"], &["fahrenheit"], "5/9", "459.67"),
    data(Data, &["bit", "b"], &["bit"], "1"),
    data(Data, &["B"], &["byte"], "8"),
    data(Rate, &["bps"], &[], "1"),
    metric(Angle, &["rad"], &["radian"], "1"),
    row(Angle, &["deg", "°"], &["degree"], "pi*1/180"),
    row(Angle, &["arcmin"], &["arcminute"], "pi*1/10800"),
    row(Angle, &["arcsec"], &["arcsecond"], "pi*1/648000"),
    row(Angle, &["turn"], &["revolution"], "pi*2"),
    row(Ratio, &["%"], &["percent"], "1/100"),
];
