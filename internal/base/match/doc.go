// Package match compiles matchers for text and for JSON values.
//
// Matching takes time linear in the text and never fails: an invalid pattern is reported when the matcher is created.
package match
