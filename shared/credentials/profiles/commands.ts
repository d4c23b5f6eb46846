/** Commands of the mesh's own endpoints that profiles name; their declarations are the mesh's (state §6). */

export const MANAGER = {
  untargeted: ["status", "list", "run-start", "run-resume", "run-answer"],
  owner: ["spawn", "despawn", "turn", "resolve-cwd"],
  self: ["whoami", "run-answer"],
} as const;

export const DELIVERY = { self: ["join", "leave", "list"] } as const;
