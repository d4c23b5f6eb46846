/**
 * An ordered list of named steps over what is known so far.
 * A step cannot run before those it builds on: what they learned is its parameter's type.
 */
export interface Entered {
  /** From 1. */
  readonly number: number;
  readonly name: string;
}

type Run<Start, Known> = (start: Start, enter: (step: Entered) => void) => Promise<Known>;

export class Steps<Start extends object, Known extends object> {
  readonly names: readonly string[];
  /** Runs all steps in order; `enter` hears of each before it runs. The first that throws ends the run. */
  readonly run: Run<Start, Known>;

  private constructor(names: readonly string[], run: Run<Start, Known>) {
    this.names = names;
    this.run = run;
  }

  static from<Start extends object>(): Steps<Start, Start> {
    return new Steps<Start, Start>([], async (start) => start);
  }

  /** A step that throws or lets pass. */
  check(step: (known: Known) => unknown): Steps<Start, Known> {
    return this.#then(step.name, async (known) => {
      await step(known);
      return known;
    });
  }

  /** A step that adds to what is known. */
  learn<More extends object>(step: (known: Known) => More | Promise<More>): Steps<Start, Known & More> {
    return this.#then(step.name, async (known) => ({ ...known, ...(await step(known)) }));
  }

  #then<Next extends object>(name: string, step: (known: Known) => Promise<Next>): Steps<Start, Next> {
    const entered = { number: this.names.length + 1, name };
    return new Steps<Start, Next>([...this.names, name], async (start, enter) => {
      const known = await this.run(start, enter);
      enter(entered);
      return step(known);
    });
  }
}
