/** A scripted claude for tests: the same events as the real one, no tokens. */
export { call, fail, Failure, ToolCall, type Step } from "./steps.js";
export { ClaudelessError, Hold, ScriptedClaude, scriptedClaude, type ScriptedClaudeOptions, type Verdict } from "./scripted.js";
export { Terminal, type Cell, type Screen, type TerminalOptions } from "./terminal.js";
export type { Call, ToolRun } from "./journal.js";
