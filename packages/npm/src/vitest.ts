// import "claudeless/vitest": matchers, and the verdict after each test.
import { afterEach, expect } from "vitest";
import { matchers, verifyOpen, type ClaudelessMatchers } from "./matchers.js";

expect.extend(matchers);
afterEach(verifyOpen);

declare module "vitest" {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  interface Assertion<T = any> extends ClaudelessMatchers<void> {}
  interface AsymmetricMatchersContaining extends ClaudelessMatchers<void> {}
}
