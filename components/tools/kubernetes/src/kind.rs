//! Kinds of resources, by the names that people and models have for them, and where the
//! API has them.

use crate::name::{is_label, is_subdomain};
use crate::trouble::quoted;

/// Whether resources of a kind are in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Namespaced,
    Cluster,
}

/// A kind of resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// The beginning of its paths, such as `/apis/apps/v1`.
    pub(crate) base: String,
    /// Its name there.
    pub(crate) plural: String,
    /// The kind as objects name it; none where it is not known beforehand.
    pub(crate) singular: Option<&'static str>,
    pub(crate) scope: Scope,
}

type Row = (&'static str, &'static str, &'static str, &'static [&'static str], Scope);

const CORE: &str = "/api/v1";
const APPS: &str = "/apis/apps/v1";
const BATCH: &str = "/apis/batch/v1";
const NETWORKING: &str = "/apis/networking.k8s.io/v1";

use Scope::{Cluster, Namespaced};

/// Those that every cluster has: the plural, the kind, where it is, short names.
const KNOWN: &[Row] = &[
    ("pods", "Pod", CORE, &["po"], Namespaced),
    ("services", "Service", CORE, &["svc"], Namespaced),
    ("events", "Event", CORE, &["ev"], Namespaced),
    ("configmaps", "ConfigMap", CORE, &["cm"], Namespaced),
    ("secrets", "Secret", CORE, &[], Namespaced),
    ("endpoints", "Endpoints", CORE, &["ep"], Namespaced),
    ("persistentvolumeclaims", "PersistentVolumeClaim", CORE, &["pvc"], Namespaced),
    ("serviceaccounts", "ServiceAccount", CORE, &["sa"], Namespaced),
    ("resourcequotas", "ResourceQuota", CORE, &["quota"], Namespaced),
    ("limitranges", "LimitRange", CORE, &["limits"], Namespaced),
    ("replicationcontrollers", "ReplicationController", CORE, &["rc"], Namespaced),
    ("nodes", "Node", CORE, &["no"], Cluster),
    ("namespaces", "Namespace", CORE, &["ns"], Cluster),
    ("persistentvolumes", "PersistentVolume", CORE, &["pv"], Cluster),
    ("deployments", "Deployment", APPS, &["deploy"], Namespaced),
    ("replicasets", "ReplicaSet", APPS, &["rs"], Namespaced),
    ("statefulsets", "StatefulSet", APPS, &["sts"], Namespaced),
    ("daemonsets", "DaemonSet", APPS, &["ds"], Namespaced),
    ("jobs", "Job", BATCH, &[], Namespaced),
    ("cronjobs", "CronJob", BATCH, &["cj"], Namespaced),
    ("ingresses", "Ingress", NETWORKING, &["ing"], Namespaced),
    ("networkpolicies", "NetworkPolicy", NETWORKING, &["netpol"], Namespaced),
    ("endpointslices", "EndpointSlice", "/apis/discovery.k8s.io/v1", &[], Namespaced),
    ("horizontalpodautoscalers", "HorizontalPodAutoscaler", "/apis/autoscaling/v2", &["hpa"], Namespaced),
    ("poddisruptionbudgets", "PodDisruptionBudget", "/apis/policy/v1", &["pdb"], Namespaced),
    ("storageclasses", "StorageClass", "/apis/storage.k8s.io/v1", &["sc"], Cluster),
];

impl Kind {
    /// The kind of a name: plural, singular or short, or `PLURAL.VERSION.GROUP` of a
    /// custom resource, which is taken for one that is in namespaces.
    ///
    /// # Errors
    /// There is none of that name.
    pub(crate) fn named(text: &str) -> Result<Self, String> {
        let name = text.trim().to_ascii_lowercase();
        let is_meant = |(plural, kind, _, short, _): &&Row| {
            *plural == name || kind.eq_ignore_ascii_case(&name) || short.contains(&name.as_str())
        };
        if let Some(row) = KNOWN.iter().find(is_meant) {
            return Ok(Self::known(row));
        }
        let mut parts = name.splitn(3, '.');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(plural), Some(version), Some(group))
                if is_label(plural) && is_version(version) && is_subdomain(group) =>
            {
                let base = format!("/apis/{group}/{version}");
                // One that is known is the same by this name.
                let known = KNOWN.iter().find(|(known, _, of, ..)| *known == plural && *of == base);
                let custom =
                    || Self { base: base.clone(), plural: plural.to_owned(), singular: None, scope: Namespaced };
                Ok(known.map_or_else(custom, Self::known))
            }
            _ => {
                let known: Vec<&str> = KNOWN.iter().map(|(plural, ..)| *plural).collect();
                Err(format!(
                    "{} is no kind that is known; there are {}, and custom resources as PLURAL.VERSION.GROUP, such as \
                     certificates.v1.cert-manager.io",
                    quoted(text),
                    known.join(", ")
                ))
            }
        }
    }

    fn known((plural, singular, base, _, scope): &Row) -> Self {
        let (base, plural) = ((*base).to_owned(), (*plural).to_owned());
        Self { base, plural, singular: Some(singular), scope: *scope }
    }

    /// Whether it may be in no namespace, for all that is known of it here.
    pub(crate) fn may_be_of_cluster(&self) -> bool {
        self.singular.is_none() || self.scope == Scope::Cluster
    }

    /// Whether its data must not be shown.
    pub(crate) fn is_secret(&self) -> bool {
        self.singular == Some("Secret")
    }

    /// The path of all that are in a namespace, or of all.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let Self { base, plural, .. } = self;
        match namespace {
            Some(namespace) => format!("{base}/namespaces/{namespace}/{plural}"),
            None => format!("{base}/{plural}"),
        }
    }
}

/// Whether a text is a version of an API, such as `v1` or `v1beta1`.
fn is_version(text: &str) -> bool {
    is_label(text) && text.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_all_of_their_names() {
        for name in ["pods", "Pod", "po", " PODS "] {
            assert_eq!(Kind::named(name).unwrap().path(Some("shop")), "/api/v1/namespaces/shop/pods", "{name}");
        }
        assert_eq!(Kind::named("deploy").unwrap().path(None), "/apis/apps/v1/deployments");
        assert_eq!(Kind::named("node").unwrap().scope, Scope::Cluster);
        // By its full name it is the same, and what is not known may be in no namespace.
        assert_eq!(Kind::named("storageclasses.v1.storage.k8s.io").unwrap().scope, Scope::Cluster);
        assert!(Kind::named("clusterroles.v1.rbac.authorization.k8s.io").unwrap().may_be_of_cluster());
        assert!(!Kind::named("pods").unwrap().may_be_of_cluster());
        let custom = Kind::named("certificates.v1.cert-manager.io").unwrap();
        assert_eq!(custom.path(Some("a")), "/apis/cert-manager.io/v1/namespaces/a/certificates");
        for bad in
            ["", "pod/web", "secrets/..", "a.b", "a.v1.", "a.1.b.c", "../secrets", "a.v1.b/../c", "pods?x", "pods%2f"]
        {
            assert!(Kind::named(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_name_is_two_kinds() {
        let mut all: Vec<String> = Vec::new();
        for (plural, kind, _, short, _) in KNOWN {
            all.extend([(*plural).to_owned(), kind.to_ascii_lowercase()]);
            all.extend(short.iter().map(|name| (*name).to_owned()));
        }
        all.sort_unstable();
        let doubles = all.windows(2).filter(|two| two[0] == two[1]).map(|two| two[0].as_str());
        // The plural and the kind are the same word here.
        assert_eq!(doubles.collect::<Vec<_>>(), ["endpoints"]);
    }
}
