// Package diag reads configuration files strictly. It indexes a TOML or JSON file, binds it to Go
// structs and reports all problems with file, line, column, source line and nearest known name.
//
// Positions come from the source text, so they are also exact inside arrays of tables and for keys the decoder skipped.
//
// # Why TOML is scanned here
//
// The syntax tree of github.com/pelletier/go-toml/v2/unstable (tried with 2.4.3) cannot replace the scanner:
//
//   - It returns nothing for an invalid expression and stops there. The index contains the keys before and after an
//     error, and the part of an array or inline table that could be read, so that every problem is reported at once.
//   - Arrays have no position: their node's Raw is empty. The scanner also records the brackets of nested lists.
//   - It reads TOML 1.1 (inline tables over several lines, trailing commas, \e) and accepts keys that are defined twice
//     and impossible dates (2026-13-01). The formats are TOML 1.0.
//   - Its errors have other positions and texts: for "1_" it points after the value, and for "01" it does not say
//     that text must be quoted, although authors of scenarios need this hint.
//
// The syntax tree could only serve as the lexer of valid values. The scanner would still be needed for files with errors.
package diag
