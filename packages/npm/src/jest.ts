// import "claudeless/jest": matchers, and the verdict after each test. It uses jest's globals.
import { matchers, verifyOpen, type ClaudelessMatchers } from "./matchers.js";

interface JestGlobals {
  expect?: { extend(matchers: object): void };
  afterEach?: (f: () => Promise<void>) => void;
}

const { expect, afterEach } = globalThis as JestGlobals;
if (!expect || !afterEach) throw new Error("claudeless/jest is for jest with its globals (injectGlobals); name it in setupFilesAfterEnv");
expect.extend(matchers);
afterEach(verifyOpen);

declare global {
  namespace jest {
    interface Matchers<R> extends ClaudelessMatchers<R> {}
  }
}
