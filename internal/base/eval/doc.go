// Package eval is the one expression language of scenarios, fixtures and the
// debugger: expr-lang with a typed set of names, and templates that hold such
// expressions in double braces.
//
// Its invariant: running an expression has no side effects, depends on nothing
// but its variables, and ends within a fixed number of steps and bytes. It
// knows none of the names it is given.
package eval
