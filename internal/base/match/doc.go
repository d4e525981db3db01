// Package match holds compiled matchers for text and for JSON values.
//
// Its invariant: matching takes time linear in the text and never fails; what
// can be wrong with a pattern is found when the matcher is made. It knows no
// file format and nothing of prompts or tools.
package match
