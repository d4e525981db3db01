package redact

import "strings"

// Args hides the secrets of a command line, one argument each: values of
// options such as --token X and -u user:password, beside what String hides.
func (r *Redactor) Args(args []string) []string {
	out := make([]string, len(args))
	option := "" // the option whose value may come next
	for i, arg := range args {
		out[i] = r.arg(option, arg)
		option = ""
		if strings.HasPrefix(arg, "-") {
			option = arg
		}
	}
	return out
}

func (r *Redactor) arg(option, arg string) string {
	name := strings.TrimLeft(option, "-")
	if option != "" && !strings.HasPrefix(arg, "-") {
		if nameLooksSecret(name) && !isPlaceholder(arg) {
			return r.label.For("VALUE", arg)
		}
		if user, password, ok := strings.Cut(arg, ":"); ok && (name == "u" || name == "user" || name == "proxy-user") && !isPlaceholder(password) {
			return user + ":" + r.label.For("VALUE", password)
		}
	}
	if name, value, ok := strings.Cut(arg, "="); ok && nameLooksSecret(strings.TrimLeft(name, "-")) && !strings.ContainsAny(name, " /?&") && !isPlaceholder(value) {
		return name + "=" + r.label.For("VALUE", value)
	}
	return r.String(arg)
}
