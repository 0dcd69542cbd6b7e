//! `nala:machine`: what the machine is and does, and what its models do.
//!
//! Figures of a machine that is shared tell about others who share it. So they are for
//! components that are granted them, all who ask share one reading of a tenth of a second
//! ([`readings`]), and tenants are shown one of a second, rounded ([`convert`]).

mod convert;
mod readings;

use std::sync::Arc;

use nala_engine::PooledModel;
use nala_tenant::Tenant;
use wasmtime::Result;
use wasmtime::component::{HasData, Linker};

use crate::store::StoreData;
use bindings::nala::machine::telemetry::{Error, Host, Load, Machine, Model, add_to_linker as add};
pub(crate) use readings::Readings;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/nala-machine",
        world: "nala:machine/user",
        imports: {
            "nala:machine/telemetry.get-machine": async | trappable,
            "nala:machine/telemetry.get-load": async | trappable,
            default: trappable,
        },
        require_store_data_send: true,
    });
}

/// What a component may read of the machine and its models. By default nothing.
#[derive(Clone, Default)]
pub enum Telemetry {
    /// Nothing.
    #[default]
    Denied,
    /// A component of the operator's: the machine, and those of the models that the tenant
    /// may use for whom it works. The owner of the machine is shown exact figures, and
    /// tenants are shown rounded ones.
    Operator(
        /// The models.
        Vec<PooledModel>,
    ),
    /// A component that a tenant has deployed: the same in rounded figures, as long as the
    /// operator lets the tenant ([`Tenant::may_read_machine`]).
    Deployed(
        /// The models.
        Vec<PooledModel>,
    ),
}

/// How fine the figures are that somebody is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fineness {
    /// As the system has them.
    Exact,
    /// Rounded, and seldom.
    Coarse,
}

/// What a component may read, and where it is read.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) grant: Arc<Telemetry>,
    pub(crate) readings: Arc<Readings>,
}

/// What the calls of the interface work on.
pub(crate) struct View<'a> {
    access: &'a Access,
    /// For whom the store works.
    tenant: &'a Tenant,
}

impl<'a> View<'a> {
    /// How fine the figures are, and of which models.
    fn allowed(&self) -> Result<(Fineness, &'a [PooledModel]), Error> {
        match &*self.access.grant {
            Telemetry::Denied => Err(Error::Denied(
                "this component may not read what the machine does; write `telemetry = true` under \
                 [component.NAME.tool.nala]"
                    .to_owned(),
            )),
            Telemetry::Deployed(_) if !self.tenant.may_read_machine() => Err(Error::Denied(
                "the operator does not let applications of this tenant read what the machine does; that takes \
                 `telemetry = true` under [tenant.NAME] in nala.toml"
                    .to_owned(),
            )),
            Telemetry::Deployed(models) => Ok((Fineness::Coarse, models)),
            Telemetry::Operator(models) if self.tenant.name().is_local() => Ok((Fineness::Exact, models)),
            Telemetry::Operator(models) => Ok((Fineness::Coarse, models)),
        }
    }
}

struct HasTelemetry;

impl HasData for HasTelemetry {
    type Data<'a> = View<'a>;
}

pub(crate) fn add_to_linker(linker: &mut Linker<StoreData>) -> Result<()> {
    add::<_, HasTelemetry>(linker, |data| View { access: &data.telemetry, tenant: &data.account.tenant })
}

impl Host for View<'_> {
    async fn get_machine(&mut self) -> Result<Result<Machine, Error>> {
        let (fineness, _) = match self.allowed() {
            Ok(allowed) => allowed,
            Err(error) => return Ok(Err(error)),
        };
        let moment = self.access.readings.any().await;
        Ok(moment.map(|moment| convert::machine(&moment.machine, fineness)).map_err(Error::Unavailable))
    }

    async fn get_load(&mut self) -> Result<Result<Load, Error>> {
        let (fineness, _) = match self.allowed() {
            Ok(allowed) => allowed,
            Err(error) => return Ok(Err(error)),
        };
        let moment = self.access.readings.now(fineness).await;
        Ok(moment.map(|moment| convert::load(&moment, fineness)).map_err(Error::Unavailable))
    }

    fn get_models(&mut self) -> Result<Result<Vec<Model>, Error>> {
        Ok(self.allowed().map(|(fineness, models)| {
            let models = models.iter().filter(|model| self.tenant.may_use_model(model.name()));
            models.map(|model| convert::model(&self.access.readings.model(model, fineness), fineness)).collect()
        }))
    }
}
