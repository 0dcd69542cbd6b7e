//! The loop of an agent: the model takes a turn, the tools that it calls do what they are
//! asked, the model reads what they say, and so on until it has its answer.
//!
//! All of it is one session beside the model. What a tool says is appended to what the
//! session holds; nothing is rendered, tokenised or computed a second time, and nothing a
//! tool says becomes a control token.
//!
//! How the model speaks is for a [`Speaker`]: whether it is held to a grammar, whether
//! somebody reads along, and which of its turns is the last one. A [`Loop`] has it take its
//! turns and gives a [`Step`] at a time.

mod behind;
mod calls;
mod first;
mod speaker;
mod steps;

pub use calls::{Failure, Outcome, Returned};
pub use first::{First, Within};
pub use speaker::{Speaker, Then, Turn, Wanted};
pub use steps::{Budget, Loop, Over, Read, Step, Usage};
