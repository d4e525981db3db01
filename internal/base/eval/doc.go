// Package eval implements the expression language of scenarios, fixtures and the debugger: expr-lang with typed
// variables, and templates that contain such expressions in double braces.
//
// Evaluation has no side effects, depends only on the variables, and ends within a fixed number of steps and bytes.
package eval
