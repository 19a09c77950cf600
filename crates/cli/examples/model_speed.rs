//! How many data segments a second the model simulates on one core, and how long a short transfer
//! takes.
//!
//!     cargo run --release -p tcpwhy-cli --example model_speed

use std::time::Instant;

use tcpwhy_model::profile::{KernelProfile, Version};
use tcpwhy_model::scenario::Scenario;
use tcpwhy_model::world::{Keep, Kernels, World};

fn main() -> anyhow::Result<()> {
    measure("long", "rtt = \"20ms\"\nrate = \"1gbit\"", 1 << 30, 1)?;
    measure("lossy", "rtt = \"20ms\"\nrate = \"100mbit\"\ndown.loss = \"0.5%\"", 100 << 20, 1)?;
    measure("short", "rtt = \"6ms\"\nrate = \"1gbit\"", 512 << 10, 1000)
}

#[expect(clippy::print_stdout, reason = "this is what the program is for")]
fn measure(name: &str, path: &str, bytes: u64, times: u32) -> anyhow::Result<()> {
    let text = format!("limit = \"1h\"\n[path]\n{path}\n[application]\ndownload = \"{bytes}B\"\n");
    let scenario = Scenario::read(name, &text, &[])?;
    let plan = scenario.plans(1).next().ok_or_else(|| anyhow::anyhow!("no plan"))?;
    let kernels = Kernels::both(KernelProfile::of(Version::new(6, 12)));
    let began = Instant::now();
    let mut events = 0;
    for _ in 0..times {
        let (outcome, _) = World::new(&plan, kernels, Keep::default())?.run();
        anyhow::ensure!(outcome.done, "{:?}", outcome.waiting);
        events += outcome.events;
    }
    let took = began.elapsed().as_secs_f64();
    let segments = (bytes * u64::from(times)) as f64 / 1448.0;
    println!(
        "{name}: {:.2} million data segments a second, {:.1} events a segment, {:.3} ms a run",
        segments / took / 1e6,
        events as f64 / segments,
        took * 1000.0 / f64::from(times)
    );
    Ok(())
}
