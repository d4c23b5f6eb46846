/**
 * An ordered list of named steps, each of which adds what it established to what is known.
 * A step cannot run before those it builds on: their results are its parameter's type.
 */
export interface Entered {
  /** From 1. */
  readonly number: number;
  readonly name: string;
}

export class Steps<Start extends object, Known extends object> {
  readonly names: readonly string[];
  readonly #run: (start: Start, enter: (step: Entered) => void) => Promise<Known>;

  private constructor(names: readonly string[], run: Steps<Start, Known>["run"]) {
    this.names = names;
    this.#run = run;
  }

  static from<Start extends object>(): Steps<Start, Start> {
    return new Steps<Start, Start>([], async (start) => start);
  }

  then<More extends object | void>(step: (known: Known) => More | Promise<More>): Steps<Start, Known & More> {
    const entered = { number: this.names.length + 1, name: step.name };
    return new Steps<Start, Known & More>([...this.names, step.name], async (start, enter) => {
      const known = await this.#run(start, enter);
      enter(entered);
      return { ...known, ...(await step(known)) };
    });
  }

  /** Runs all steps in order; `enter` hears of each before it runs. The first that throws ends the run. */
  run(start: Start, enter: (step: Entered) => void): Promise<Known> {
    return this.#run(start, enter);
  }
}
