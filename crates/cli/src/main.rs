#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    cli::run(std::env::args_os())
}
