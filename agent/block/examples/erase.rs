//! Erase a disk by hand: `cargo run --release -p block --example erase -- /dev/loop9 [METHOD]`.
//! Everything on it is lost. Without arguments the disks of the machine are listed.

use block::{Filter, Method, Progress, Roots, Watch, methods};

struct Print;

impl Watch for Print {
    fn progress(&self, progress: Progress) {
        eprintln!("{progress:?}");
    }
    fn cancelled(&self) -> bool {
        false
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (device, wanted) = (arguments.next(), arguments.next());
    let roots = Roots::default();
    let Some(device) = device else {
        for disk in block::list(&roots, &Filter::All)? {
            let probe = block::probe(&disk)?;
            println!("{probe:#?}\n{:?} {:?}", block::judge(&probe), methods(&probe));
        }
        return Ok(());
    };
    for disk in block::list(&roots, &Filter::Only(vec![device.into()]))? {
        let probe = block::probe(&disk)?;
        println!("{probe:#?}");
        if let Some(refusal) = block::judge(&probe).first() {
            return Err(refusal.to_string().into());
        }
        let methods: Vec<Method> = methods(&probe)
            .into_iter()
            .filter(|method| wanted.as_deref().is_none_or(|wanted| wanted == method.as_str()))
            .collect();
        let started = std::time::Instant::now();
        let record = block::erase(&block::Device::open(&roots, &probe)?, &methods, &Print);
        println!("{record:#?}\n{:.2} s", started.elapsed().as_secs_f64());
    }
    Ok(())
}
