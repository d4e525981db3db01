// Package diag reads configuration files strictly. It indexes a TOML or JSON file, binds it to Go
// structs and reports all problems with file, line, column, source line and nearest known name.
//
// Positions come from the source text, so they are also exact inside arrays of tables and for keys the decoder skipped.
//
// TOML is scanned here, because the syntax tree of github.com/pelletier/go-toml/v2/unstable (tried with 2.4.3) ends at
// the first error, has no positions of arrays, accepts more than TOML 1.0, and has errors without our hints.
package diag
