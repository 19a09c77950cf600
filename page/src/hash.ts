// The place that is looked at, in the address: a link shows the same again.

export interface Place {
  connection?: number;
  side?: number;
  from?: number;
  to?: number;
  /** Changes that are tried, `KEY=VALUE`. */
  tries?: string[];
}

/** A change of the scenario language, and no more than that. */
const CHANGE = /^(again|[a-z][a-z0-9_.]{0,80}=[\w %.]{1,60})$/i;

export function write(place: Place): string {
  const parts: string[] = [];
  if (place.connection !== undefined) parts.push(`c=${place.connection}`);
  if (place.side !== undefined) parts.push(`d=${place.side}`);
  if (place.from !== undefined && place.to !== undefined) parts.push(`t=${Math.round(place.from)},${Math.round(place.to)}`);
  if (place.tries && place.tries.length > 0) parts.push(`w=${place.tries.map(encodeURIComponent).join(",")}`);
  return `#${parts.join("&")}`;
}

/** What cannot be read is left out. */
export function read(hash: string): Place {
  const place: Place = {};
  for (const part of hash.replace(/^#/, "").split("&")) {
    const [name, value = ""] = part.split("=");
    if (name === "w") place.tries = value.split(",").slice(0, 20).map(decoded).filter((each) => CHANGE.test(each));
    if (name === "c" && /^\d{1,15}$/.test(value)) place.connection = Number(value);
    if (name === "d" && /^[01]$/.test(value)) place.side = Number(value);
    const span = name === "t" && /^(\d{1,18}),(\d{1,18})$/.exec(value);
    if (span && Number(span[1]) < Number(span[2])) {
      place.from = Number(span[1]);
      place.to = Number(span[2]);
    }
  }
  return place;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}
