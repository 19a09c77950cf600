// What graphs are drawn with: a canvas for the screen, or SVG for files. Both get the same calls.

export interface Pen {
  rect(x: number, y: number, width: number, height: number, fill: string, alpha?: number): void;
  /** Points as x, y, x, y; NaN lifts the pen. */
  path(points: number[], stroke: string, width: number, dash?: number[]): void;
  fill(points: number[], fill: string, alpha: number): void;
  text(x: number, y: number, text: string, fill: string, align: "left" | "center" | "right", size?: number, turn?: boolean): void;
  clip(x: number, y: number, width: number, height: number, draw: () => void): void;
}

export const FONT = "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

export class CanvasPen implements Pen {
  constructor(private readonly context: CanvasRenderingContext2D) {}

  rect(x: number, y: number, width: number, height: number, fill: string, alpha = 1): void {
    const { context } = this;
    context.globalAlpha = alpha;
    context.fillStyle = fill;
    context.fillRect(x, y, width, height);
    context.globalAlpha = 1;
  }

  path(points: number[], stroke: string, width: number, dash: number[] = []): void {
    const { context } = this;
    context.strokeStyle = stroke;
    context.lineWidth = width;
    context.lineJoin = "round";
    context.setLineDash(dash);
    context.beginPath();
    this.trace(points);
    context.stroke();
    context.setLineDash([]);
  }

  fill(points: number[], fill: string, alpha: number): void {
    const { context } = this;
    context.globalAlpha = alpha;
    context.fillStyle = fill;
    context.beginPath();
    this.trace(points);
    context.closePath();
    context.fill();
    context.globalAlpha = 1;
  }

  text(x: number, y: number, text: string, fill: string, align: "left" | "center" | "right", size = 12, turn = false): void {
    const { context } = this;
    context.save();
    context.font = `${size}px ${FONT}`;
    context.fillStyle = fill;
    context.textAlign = align;
    context.textBaseline = "middle";
    context.translate(x, y);
    if (turn) context.rotate(-Math.PI / 2);
    context.fillText(text, 0, 0);
    context.restore();
  }

  clip(x: number, y: number, width: number, height: number, draw: () => void): void {
    const { context } = this;
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    draw();
    context.restore();
  }

  private trace(points: number[]): void {
    let up = true;
    for (let at = 0; at < points.length; at += 2) {
      if (Number.isNaN(points[at])) up = true;
      else if (up) {
        this.context.moveTo(points[at], points[at + 1]);
        up = false;
      } else this.context.lineTo(points[at], points[at + 1]);
    }
  }
}

const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");

const short = (value: number): string => String(Math.round(value * 10) / 10);

export class SvgPen implements Pen {
  private readonly parts: string[] = [];
  private clips = 0;

  constructor(private readonly width: number, private readonly height: number, private readonly ground: string) {}

  rect(x: number, y: number, width: number, height: number, fill: string, alpha = 1): void {
    const faint = alpha < 1 ? ` fill-opacity="${alpha}"` : "";
    this.parts.push(`<rect x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}" fill="${fill}"${faint}/>`);
  }

  path(points: number[], stroke: string, width: number, dash: number[] = []): void {
    const dashes = dash.length > 0 ? ` stroke-dasharray="${dash.join(" ")}"` : "";
    this.parts.push(`<path d="${this.trace(points)}" fill="none" stroke="${stroke}" stroke-width="${width}"${dashes}/>`);
  }

  fill(points: number[], fill: string, alpha: number): void {
    this.parts.push(`<path d="${this.trace(points)}Z" fill="${fill}" fill-opacity="${alpha}"/>`);
  }

  text(x: number, y: number, text: string, fill: string, align: "left" | "center" | "right", size = 12, turn = false): void {
    const anchor = { left: "start", center: "middle", right: "end" }[align];
    const turned = turn ? ` transform="rotate(-90 ${short(x)} ${short(y)})"` : "";
    this.parts.push(
      `<text x="${short(x)}" y="${short(y)}" font-size="${size}" fill="${fill}" text-anchor="${anchor}" dominant-baseline="central"${turned}>${escaped(text)}</text>`,
    );
  }

  clip(x: number, y: number, width: number, height: number, draw: () => void): void {
    this.clips += 1;
    const id = `clip${this.clips}`;
    this.parts.push(`<clipPath id="${id}"><rect x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"/></clipPath><g clip-path="url(#${id})">`);
    draw();
    this.parts.push("</g>");
  }

  done(title: string): string {
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}" font-family="${FONT.replace(/'/g, "")}">` +
      `<title>${escaped(title)}</title><rect width="${this.width}" height="${this.height}" fill="${this.ground}"/>${this.parts.join("")}</svg>\n`
    );
  }

  private trace(points: number[]): string {
    let path = "";
    let up = true;
    for (let at = 0; at < points.length; at += 2) {
      if (Number.isNaN(points[at])) up = true;
      else {
        path += `${up ? "M" : "L"}${short(points[at])} ${short(points[at + 1])}`;
        up = false;
      }
    }
    return path;
  }
}
