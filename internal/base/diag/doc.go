// Package diag reads configuration files strictly and reports where they are wrong: it indexes the source of a TOML
// or JSON file, binds it to Go structs and reports every problem at once with file, line, column, the source line
// and the nearest known name.
//
// Positions come from the source text itself, so they are also exact inside arrays of tables and for keys that the
// decoder did not read.
package diag
