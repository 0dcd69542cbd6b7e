//! Middleware: components that requests go through before the one that answers.
//!
//! Each imports the interface that it exports, and what it calls there is the next one.

use nala_manifest::dependencies::DependencyName;

use crate::graph::{Joining, Part};
use crate::{ComposeError, Dependency, Main};

/// What is handed on from one to the next: requests, by WASI 0.3 and by WASI 0.2.
const HANDLERS: [&str; 2] = ["wasi:http/handler", "wasi:http/incoming-handler"];

/// Puts middleware before a component, the outermost first.
pub(crate) fn chain(main: &Main<'_>, middleware: &[Dependency<'_>]) -> Result<Vec<u8>, ComposeError> {
    let mut joining = Joining::new(main);
    let mut next = joining.add_main()?;
    // What is behind the one that is added, for errors.
    let mut behind = main.name.to_owned();
    for (number, dependency) in middleware.iter().enumerate().rev() {
        let part = joining.read_dependency(number, dependency)?;
        let import = handler_import(&joining, part, dependency.name)?;
        joining.deny_all_but(part, number, dependency, Some(&import))?;
        joining.hand_on(part, &import, next, &behind, dependency.name)?;
        (next, behind) = (part, dependency.name.to_string());
    }
    joining.export_handlers(next, &behind)?;
    joining.encode()
}

fn is_handler(name: &str) -> bool {
    let interface = name.split_once('@').map_or(name, |(interface, _)| interface);
    HANDLERS.contains(&interface)
}

/// Where a middleware calls the next one.
fn handler_import(joining: &Joining<'_>, part: Part, name: &DependencyName) -> Result<String, ComposeError> {
    let import = joining.imports(part).map(|(import, _)| import).find(|import| is_handler(import));
    import.map(str::to_owned).ok_or_else(|| ComposeError::HandsNothingOn {
        middleware: Box::new(name.clone()),
        imports: joining.imports_of_others_first(part),
    })
}

impl Joining<'_> {
    /// Has what a middleware calls be what is behind it.
    fn hand_on(
        &mut self,
        part: Part,
        import: &str,
        next: Part,
        behind: &str,
        middleware: &DependencyName,
    ) -> Result<(), ComposeError> {
        let unfit = |reason| ComposeError::NotBehind {
            middleware: Box::new(middleware.clone()),
            behind: behind.to_owned(),
            import: import.to_owned(),
            reason,
        };
        let Some(export) = self.export_for(next, import) else {
            let handlers: Vec<&str> =
                self.exports(next).map(|(name, _)| name).filter(|name| is_handler(name)).collect();
            return Err(unfit(match handlers.as_slice() {
                [] => "it exports no handler of requests".to_owned(),
                handlers => format!("it exports {}", handlers.join(" and ")),
            }));
        };
        self.connect(next, &export, part, import).map_err(unfit)
    }

    /// Exports the outermost one's handlers, and nothing else of it.
    fn export_handlers(&mut self, outermost: Part, name: &str) -> Result<(), ComposeError> {
        if !self.exports(outermost).any(|(export, _)| is_handler(export)) {
            let reason = format!("`{name}` exports no handler of requests");
            return Err(ComposeError::Main { main: self.main.name.to_owned(), reason });
        }
        self.export(outermost, is_handler)
    }
}
