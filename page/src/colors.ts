// Colours of states and series: those of Okabe and Ito, which stay apart under all common colour blindness, on light
// and on dark ground. The same families have the same colours on the terminal.

export interface Theme {
  ground: string;
  text: string;
  faint: string;
  grid: string;
  family: Record<string, string>;
  ink: Record<string, string>;
}

const LIGHT: Theme = {
  ground: "#ffffff",
  text: "#1d232a",
  faint: "#5a6570",
  grid: "#e3e7eb",
  family: {
    round: "#cc79a7",
    loss: "#d55e00",
    window: "#56b4e9",
    sender: "#e8d400",
    path: "#009e73",
    congestion: "#e69f00",
    program: "#9aa3ab",
    unknown: "#e3e7eb",
  },
  ink: {
    data: "#1d232a",
    ack: "#00835f",
    edge: "#2f8fc9",
    window: "#2f8fc9",
    sack: "#b45c90",
    fast: "#d55e00",
    rto: "#a80f0f",
    tlp: "#e69f00",
    needless: "#8a5fbf",
    late: "#7d8790",
    lost: "#a80f0f",
    round: "#9aa3ab",
    flight: "#1d232a",
    cwnd: "#e69f00",
    bdp: "#00835f",
    rate: "#2f6fb0",
    rtt: "#2f6fb0",
    stack: "#d55e00",
    least: "#5a6570",
    buffer: "#8a5fbf",
    queue: "#e69f00",
    other: "#c2187f",
  },
};

const DARK: Theme = {
  ground: "#14181d",
  text: "#e6eaee",
  faint: "#9aa6b2",
  grid: "#2a323a",
  family: { ...LIGHT.family, unknown: "#2a323a", program: "#77828c", sender: "#f0e442" },
  ink: {
    ...LIGHT.ink,
    data: "#e6eaee",
    flight: "#e6eaee",
    ack: "#2fc79a",
    bdp: "#2fc79a",
    edge: "#56b4e9",
    window: "#56b4e9",
    sack: "#dd93bd",
    fast: "#ff8a3d",
    rto: "#ff5a5a",
    lost: "#ff5a5a",
    needless: "#b493e6",
    rate: "#6aa9e8",
    rtt: "#6aa9e8",
    stack: "#ff8a3d",
    late: "#9aa6b2",
    least: "#9aa6b2",
    buffer: "#b493e6",
    other: "#ff7fc4",
  },
};

export function theme(isDark: boolean): Theme {
  return isDark ? DARK : LIGHT;
}
