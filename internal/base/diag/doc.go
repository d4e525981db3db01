// Package diag reads configuration files strictly and says where they are
// wrong: it indexes the source of a TOML or JSON file, binds it to Go structs
// and reports every problem at once with file, line, column, the source line
// and the nearest known name.
//
// Its invariant: a position always comes from the source text itself, so it is
// exact also inside arrays of tables and for keys that no decoder looked at.
// It must not know any particular file format.
package diag
