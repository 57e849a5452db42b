//! Runs a handler in the body of an export, and the macros that write these exports.

use crate::host::{fail, log};
use crate::input::Input;
use crate::pick::send_choice;
use crate::{
    Action, ErrorInfo, Pick, Prompt, Request, Response, Result, StreamAction, StreamEvent, TextAction, TextPiece,
    ToolAction, ToolCall,
};
use std::rc::Rc;

/// Writes the export `on_request`; the handler is `fn(&Request) -> Result<Action>`.
#[macro_export]
macro_rules! on_request {
    ($handler:expr) => {
        #[no_mangle]
        pub extern "C" fn on_request() -> i32 {
            $crate::run_request($handler)
        }
    };
}

/// Writes the export `on_response`; the handler is `fn(&Request, &Response) -> Result<Action>`.
#[macro_export]
macro_rules! on_response {
    ($handler:expr) => {
        #[no_mangle]
        pub extern "C" fn on_response() -> i32 {
            $crate::run_response($handler)
        }
    };
}

/// Writes the export `on_error`; the handler is `fn(&Request, &Response, &ErrorInfo) -> Result<Action>`.
#[macro_export]
macro_rules! on_error {
    ($handler:expr) => {
        #[no_mangle]
        pub extern "C" fn on_error() -> i32 {
            $crate::run_error($handler)
        }
    };
}

/// Writes the export `on_stream_event`; the handler is `fn(&Request, &StreamEvent) -> Result<StreamAction>`.
#[macro_export]
macro_rules! on_stream_event {
    ($handler:expr) => {
        #[no_mangle]
        pub extern "C" fn on_stream_event() -> i32 {
            $crate::run_stream_event($handler)
        }
    };
}

/// Writes the export `on_text`; the handler is `fn(&Request, &TextPiece) -> Result<TextAction>`.
#[macro_export]
macro_rules! on_text {
    ($handler:expr) => {
        #[no_mangle]
        pub extern "C" fn on_text() -> i32 {
            $crate::run_text($handler)
        }
    };
}

/// Writes the export `on_prompt_text`; the handler is `fn(&Request, &mut Prompt) -> Result<Action>`.
#[macro_export]
macro_rules! on_prompt_text {
    ($handler:expr) => {
        #[no_mangle]
        pub extern "C" fn on_prompt_text() -> i32 {
            $crate::run_prompt_text($handler)
        }
    };
}

/// Writes the export `on_tool_call`; the handler is `fn(&Request, &ToolCall) -> Result<ToolAction>`.
#[macro_export]
macro_rules! on_tool_call {
    ($handler:expr) => {
        #[no_mangle]
        pub extern "C" fn on_tool_call() -> i32 {
            $crate::run_tool_call($handler)
        }
    };
}

/// Writes the export `on_pick`; the handler is `fn(&Request, &Pick) -> Result<Option<usize>>`, the place of a candidate.
#[macro_export]
macro_rules! on_pick {
    ($handler:expr) => {
        #[no_mangle]
        pub extern "C" fn on_pick() -> i32 {
            $crate::run_pick($handler)
        }
    };
}

/// Writes the export `describe` from a `Description`.
#[macro_export]
macro_rules! describe {
    ($description:expr) => {
        #[no_mangle]
        pub extern "C" fn describe() -> i32 {
            $description.send()
        }
    };
}

#[doc(hidden)]
pub fn run_request(handler: impl Fn(&Request) -> Result<Action>) -> i32 {
    run(|input| handler(&Request { input, has_body: true })?.send())
}

#[doc(hidden)]
pub fn run_response(handler: impl Fn(&Request, &Response) -> Result<Action>) -> i32 {
    run(|input| handler(&request_of(&input), &Response { input })?.send())
}

#[doc(hidden)]
pub fn run_error(handler: impl Fn(&Request, &Response, &ErrorInfo) -> Result<Action>) -> i32 {
    run(|input| handler(&request_of(&input), &Response { input: input.clone() }, input.error())?.send())
}

#[doc(hidden)]
pub fn run_stream_event(handler: impl Fn(&Request, &StreamEvent) -> Result<StreamAction>) -> i32 {
    run(|input| handler(&request_of(&input), &StreamEvent { input })?.send())
}

#[doc(hidden)]
pub fn run_text(handler: impl Fn(&Request, &TextPiece) -> Result<TextAction>) -> i32 {
    run(|input| handler(&request_of(&input), &TextPiece { input })?.send())
}

#[doc(hidden)]
pub fn run_prompt_text(handler: impl Fn(&Request, &mut Prompt) -> Result<Action>) -> i32 {
    run(|input| {
        let mut prompt = Prompt::read(&input)?;
        let action = handler(&request_of(&input), &mut prompt)?;
        prompt.send(action)
    })
}

#[doc(hidden)]
pub fn run_tool_call(handler: impl Fn(&Request, &ToolCall) -> Result<ToolAction>) -> i32 {
    run(|input| handler(&request_of(&input), &ToolCall { input })?.send())
}

#[doc(hidden)]
pub fn run_pick(handler: impl Fn(&Request, &Pick) -> Result<Option<usize>>) -> i32 {
    run(|input| send_choice(handler(&Request { input: input.clone(), has_body: true }, input.pick())?))
}

/// An error fails the call with its text; a panic traps, and says in the log why.
fn run(handler: impl FnOnce(Rc<Input>) -> Result<()>) -> i32 {
    std::panic::set_hook(Box::new(|info| log::error(&info.to_string())));
    match Input::open().and_then(handler) {
        Ok(()) => 0,
        Err(error) => {
            fail(&error.to_string());
            1
        }
    }
}

/// In the phases whose body is not the request's.
fn request_of(input: &Rc<Input>) -> Request {
    Request { input: input.clone(), has_body: false }
}
