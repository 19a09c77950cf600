# `make demo` and `make test` work on a fresh machine: scripts/setup installs what is missing.

# A toolchain that setup has just installed is found without a new shell; an existing one goes first.
export PATH := $(PATH):$(or $(CARGO_HOME),$(HOME)/.cargo)/bin

DEMO := testdata/articles/download-512k-rtt7ms.tcpdump.txt

.PHONY: help demo page wheel dist site test check bench bench-fleet fuzz uml accuracy fidelity whatif gains loop ablation public

help:
	@echo 'make demo    build, and explain a real capture'
	@echo 'make page    build the page for the browser, which the program carries'
	@echo 'make wheel   the Python module with the command, as a wheel in dist/'
	@echo 'make site    the documents as a site, with the page for the browser, in dist/site'
	@echo 'make dist    what is given away: static program, .deb, .rpm, image, checksums in dist/'
	@echo 'make test    every test there is'
	@echo 'make check   format, lints, licences'
	@echo 'make bench   speed and memory, beside tcptrace and tshark; of the model, beside ns-3; of live, beside ss; of the page, beside uPlot and ECharts; of tables and Python, beside JSON'
	@echo 'make bench-fleet  a fleet on Spark beside one machine, over 10 GB of captures, and what is large in one place'
	@echo 'make fuzz    fuzz every reader until stopped'
	@echo 'make uml     build simulated kernels for the lab (VERSIONS="5.10 6.1 6.12" HZ=250)'
	@echo 'make fidelity  the model of TCP, held against kernels in simulated time (RUNS=50 SEED=1 KERNELS=6.1,5.10,6.12)'
	@echo 'make gains     gains by arithmetic, held against runs of the model (PAIRS=14 SEED=1)'
	@echo 'make whatif    answers of what-ifs, held against kernels in simulated time (EACH=4 SEED=1 BACKEND=uml:6.1)'
	@echo 'make loop      what is known to limit, carried out by the model and explained (SEEDS=3,4,5,6,7,8)'
	@echo 'make ablation  what each rule of the method is worth (SEEDS=1001,1002)'
	@echo 'make public    captures that other projects publish, beside tshark (fetched once, 200 MB)'
	@echo 'make accuracy  random experiments, explained and held against the sending kernel (RUNS=300 LIVE=30 SEED=1)'

demo:
	@scripts/setup demo
	cargo build --release --locked --quiet -p tcpwhy-cli
	@echo
	cargo run --release --locked --quiet -p tcpwhy-cli -- $(DEMO)

# The page's frame and its core, which are committed: whoever changes page/src, the core or the model runs this.
page:
	@scripts/setup demo
	cd page && npm ci --ignore-scripts --no-audit --no-fund --silent && node build.mjs
	node page/build.mjs core "$$(scripts/page-core)"

# A Python with what builds it is kept outside the clone.
wheel:
	@scripts/setup demo
	mkdir -p dist
	scripts/wheel "$$(scripts/python python/test-packages.txt)" dist

# mdBook comes from crates.io: `scripts/setup dist`.
site:
	@scripts/setup dist
	cargo build --release --locked --quiet -p tcpwhy-cli
	scripts/site "$(or $(CARGO_TARGET_DIR),target)/release/tcpwhy" dist/site
	scripts/links dist/site

# What is given away: docs/releasing.md.
dist:
	@scripts/setup dist
	scripts/dist

# Both parts run even if the first fails, so that one run tells all.
test:
	@scripts/setup test
	@status=0; \
	cargo test --locked --workspace --no-fail-fast </dev/null || status=1; \
	scripts/check || status=1; \
	exit $$status

check:
	@scripts/setup demo
	scripts/check format clippy deny

bench:
	@scripts/setup bench
	bench/run
	bench/model
	bench/live $(or $(CARGO_TARGET_DIR),target)/release/tcpwhy
	cd page && npm ci --ignore-scripts --no-audit --no-fund --silent
	bench/page $(or $(CARGO_TARGET_DIR),target)/release/tcpwhy
	cargo build --release --locked --quiet -p tcpwhy-cli --features tables
	bench/tables "$$(bench/python python/test-packages.txt)"

# Spark on this machine, over 10 GB of captures (FLEET="--size 4GB"): docs/scale.md.
bench-fleet:
	@scripts/setup bench
	cargo build --release --locked --quiet -p tcpwhy-cli --features tables
	python=$$(bench/python python/spark-packages.txt) && \
	  bench/fleet "$$python" --tcpwhy $(or $(CARGO_TARGET_DIR),target)/release/tcpwhy $(FLEET) && bench/fleet "$$python" --skew

fuzz:
	@scripts/setup demo
	fuzz/run

# Kernels land in the user's cache, not in the clone; what is there and fresh is left as it is.
uml:
	@scripts/setup uml
	scripts/uml $(VERSIONS) $(if $(HZ),--hz $(HZ))

# In simulated time first (`make uml` builds the kernel), then on the running kernel.
RUNS ?= 300
LIVE ?= 30
SEED ?= 1

accuracy:
	@scripts/setup demo
	cargo build --release --locked --quiet -p tcpwhy-cli
	cargo run --release --locked --quiet -p tcpwhy-cli -- lab accuracy --backend uml --runs $(RUNS) --seed $(SEED)
	cargo run --release --locked --quiet -p tcpwhy-cli -- lab accuracy --backend uml --runs $(RUNS) --seed $(SEED) --networks
	cargo run --release --locked --quiet -p tcpwhy-cli -- lab accuracy --backend tun --runs $(LIVE) --seed $(SEED)

# The model of TCP against kernels in simulated time (`make uml VERSIONS="5.10 6.1 6.12"` builds them),
# without losses and with the same packets lost.
KERNELS ?= 6.1,5.10,6.12

fidelity: RUNS = 50
fidelity:
	@scripts/setup demo
	cargo run --release --locked --quiet -p tcpwhy-cli --example fidelity -- --runs $(RUNS) --seed $(SEED) --kernel $(KERNELS)
	cargo run --release --locked --quiet -p tcpwhy-cli --example fidelity -- --runs $(RUNS) --seed $(SEED) --kernel $(KERNELS) --lossy

# Scenarios of each kind, run on a kernel as they are and with changes; what-ifs see the former alone.
EACH ?= 4
BACKEND ?= uml:6.1

whatif:
	@scripts/setup demo
	cargo build --release --locked --quiet -p tcpwhy-cli
	bench/whatif.py --program $(or $(CARGO_TARGET_DIR),target)/release/tcpwhy --backend $(BACKEND) --seed $(SEED) --each $(EACH)

# Gains by arithmetic beside runs of the model that differ in one knob.
gains:
	@scripts/setup demo
	cargo run --release --locked --quiet -p tcpwhy-model --example gains -- --seed $(SEED) --each $(or $(PAIRS),14)

# Of other seeds than the test has; every fault of a capture, at both ends.
SEEDS ?= 3,4,5,6,7,8

loop:
	@scripts/setup demo
	LOOP_SEEDS=$(SEEDS) LOOP_KEEP=$(KEEP) cargo test --locked --quiet -p tcpwhy-cli --test known_limits what_is_known -- --nocapture

# Of seeds that no rule was made with; with a program of its own, from which rules can be taken out.
ablation: SEEDS = 1001,1002
ablation:
	@scripts/setup demo
	LOOP_SEEDS=$(SEEDS) cargo test --release --locked --quiet -p tcpwhy-cli --features ablation --test known_limits what_each_rule -- --nocapture

public:
	@scripts/setup test
	cargo build --release --locked --quiet -p tcpwhy-cli
	scripts/public-captures $(or $(CARGO_TARGET_DIR),target)/release/tcpwhy
