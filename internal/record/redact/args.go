package redact

import (
	"encoding/json"
	"strings"
)

// Args redacts the secrets of a command line, given as separate arguments: values of options such as --token X and -u
// user:password, repetitions of these values, and everything that String redacts.
func (r *Redactor) Args(args []string) []string {
	inside := r.withValues(args)
	found := inside.secretsAfterOptions(args)
	out := make([]string, len(args))
	for i, arg := range args {
		switch start := secretValueAt(args, i); {
		case start >= 0 && !isPlaceholder(arg[start:]):
			out[i] = arg[:start] + r.label.Placeholder("VALUE", arg[start:])
		case isJSON(arg):
			out[i] = inside.String(arg)
		default:
			out[i] = inside.redactFindings(arg, mergeFindings(append(inside.Find(arg), found[i]...)))
		}
	}
	return out
}

func isJSON(arg string) bool {
	return (strings.HasPrefix(arg, "{") || strings.HasPrefix(arg, "[")) && json.Valid([]byte(arg))
}

// withValues returns a redactor that also knows the values which the arguments of a command line mark as secret.
func (r *Redactor) withValues(args []string) *Redactor {
	values := newKnownValues(nil, nil)
	for i, arg := range args {
		if start := secretValueAt(args, i); start >= 0 {
			values.addValue(arg[start:], "VALUE")
		}
	}
	return &Redactor{label: r.label, knownValues: r.knownValues, argValues: values, personal: r.personal, forms: r.formFinder()}
}

// secretValueAt returns where a secret begins in args[i], or -1. The secret is the value of the option before it
// (--token X, -u user:X), or of a name in the same argument (token=X).
func secretValueAt(args []string, i int) int {
	arg := args[i]
	if i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.HasPrefix(arg, "-") {
		name := strings.TrimLeft(args[i-1], "-")
		if nameLooksSecret(name) {
			return 0
		}
		if user, _, ok := strings.Cut(arg, ":"); ok && (name == "u" || name == "user" || name == "proxy-user") {
			return len(user) + 1
		}
	}
	name, _, ok := strings.Cut(arg, "=")
	if ok && nameLooksSecret(strings.TrimLeft(name, "-")) && !strings.ContainsAny(name, " /?&") {
		return len(name) + 1
	}
	return -1
}

// secretsAfterOptions finds secrets after options of well-known commands, such as sshpass -p X, by index of the
// argument. It searches the arguments as one line, in which each argument is one word.
func (r *Redactor) secretsAfterOptions(args []string) map[int][]Finding {
	const inWord = '_' // replaces characters that would end a word
	var line []byte
	starts := make([]int, len(args))
	for i, arg := range args {
		starts[i] = len(line)
		for _, c := range []byte(arg) {
			if c <= ' ' || strings.IndexByte("\"'|;&", c) >= 0 {
				c = inWord
			}
			line = append(line, c)
		}
		line = append(line, ' ')
	}
	found := map[int][]Finding{}
	for _, f := range r.formFinder().findInCommandLine(string(line)) {
		for i, arg := range args {
			if start, end := max(f.Start-starts[i], 0), min(f.End-starts[i], len(arg)); start < end {
				found[i] = append(found[i], Finding{Kind: f.Kind, Start: start, End: end, Certain: f.Certain})
			}
		}
	}
	return found
}
