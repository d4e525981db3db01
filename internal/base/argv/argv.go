// Package argv parses a command line as commander.js does, the library that the real CLI uses: variadic options, optional values,
// clusters of short options, and the hint with the nearest flag. Clients rely on its behaviour and its error messages.
//
// Parsing is deterministic: it calls [OptionDefinition.Set] in the order of the words. Only -h/--help is built in. The package
// reads nothing from the process and prints nothing.
package argv

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
)

// ErrStop ends parsing when an Option's Set returns it; Parse returns it unchanged.
var ErrStop = errors.New("stop parsing")

// Error is a usage error. Text is the whole message for the user. It may have several lines and has no final newline.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }

// OptionDefinition is one option of the command line.
type OptionDefinition struct {
	// Flags is the option as help and error texts show it: "-r, --resume [value]". <x> is a required value and [x] an optional
	// one. A value that ends in "..." takes all words up to the next option. An option without brackets is a switch.
	Flags   string
	Help    string   // describes what the option does; it is not needed to parse
	Choices []string // allowed values; empty means any value
	Hidden  bool     // the option is never suggested
	// Set receives each value, in order. The value is "" for a switch and for a missing value. If Set returns an error, the
	// message is "error: option '…' argument '…' is invalid. ", followed by the text of the error. ErrStop ends parsing.
	Set func(value string) error
}

// Name returns the first long spelling without its dashes, such as "allowedTools". Without one, it is the short spelling.
func (o *OptionDefinition) Name() string {
	spec := parseOptionDefinition(o.Flags)
	for _, s := range spec.spellings {
		if name, ok := strings.CutPrefix(s, "--"); ok {
			return name
		}
	}
	return strings.TrimPrefix(spec.spellings[0], "-")
}

// Result is a parsed command line, apart from the values passed to Set.
type Result struct {
	Operands     []string            // words that do not belong to an option, in order
	Options      map[string][]string // contains the values of each option that occurred, in order, by Name; a missing value is ""
	Help         bool                // -h or --help occurred
	VariadicWord VariadicWord        // last plain word that a variadic option took as a value
}

// VariadicWord is a plain word that an option with several values took, although the user may have meant it as an operand. Option
// is the name of this option; "" means that no option took a plain word.
type VariadicWord struct {
	Option, Word string
	First        bool // Word was the first value of Option, which needs at least one value
}

// Parse parses args, which do not include the program's name. It stops at the first bad value or missing argument. For an
// unknown option, it returns the error after all words were read. If help was requested, an unknown option is not an error.
func Parse(options []OptionDefinition, args []string) (Result, error) {
	p := &parser{specs: make(map[string]*optionSpec, 2*len(options)), words: args}
	p.result.Options = make(map[string][]string)
	for i := range options {
		s := parseOptionDefinition(options[i].Flags)
		s.option = &options[i]
		for _, spelling := range s.spellings {
			p.specs[spelling] = s
		}
	}
	for len(p.words) > 0 {
		if err := p.parseWord(p.nextWord()); err != nil {
			return p.result, err
		}
	}
	if p.unknownOption != "" && !p.result.Help {
		text := "error: unknown option '" + p.unknownOption + "'"
		if bare, isLong := strings.CutPrefix(p.unknownOption, "--"); isLong {
			text += nearestNamesLine("--", bare, suggestibleNames(options))
		}
		return p.result, &Error{Text: text}
	}
	return p.result, nil
}

type valueKind int

const (
	noValue valueKind = iota
	requiredValue
	optionalValue
)

type optionSpec struct {
	option    *OptionDefinition
	spellings []string
	kind      valueKind
	variadic  bool
}

func parseOptionDefinition(definition string) *optionSpec {
	s := &optionSpec{}
	for part := range strings.FieldsFuncSeq(definition, func(r rune) bool { return r == ' ' || r == ',' }) {
		switch part[0] {
		case '<':
			s.kind, s.variadic = requiredValue, strings.HasSuffix(part, "...>")
		case '[':
			s.kind, s.variadic = optionalValue, strings.HasSuffix(part, "...]")
		default:
			s.spellings = append(s.spellings, part)
		}
	}
	return s
}

type parser struct {
	specs         map[string]*optionSpec
	words         []string
	variadic      *optionSpec // the option that takes the following plain words
	unknownOption string
	result        Result
}

func (p *parser) nextWord() string {
	word := p.words[0]
	p.words = p.words[1:]
	return word
}

func looksLikeOption(word string) bool { return len(word) > 1 && word[0] == '-' }

func (p *parser) parseWord(word string) error {
	if word == "--" {
		p.result.Operands = append(p.result.Operands, p.words...)
		p.words = nil
		return nil
	}
	if p.variadic != nil && !looksLikeOption(word) {
		p.recordVariadicWord(p.variadic, word, false)
		return p.setOptionValue(p.variadic, word)
	}
	p.variadic = nil
	switch {
	case !looksLikeOption(word):
		p.result.Operands = append(p.result.Operands, word)
		return nil
	case p.specs[word] != nil:
		return p.parseOption(p.specs[word])
	case word == "-h" || word == "--help":
		p.result.Help = true
		return nil
	}
	if len(word) > 2 && word[1] != '-' {
		if s := p.specs[word[:2]]; s != nil {
			return p.parseCluster(s, word[2:])
		}
	}
	if name, value, ok := strings.Cut(word, "="); ok {
		if s := p.specs[name]; s != nil && s.kind != noValue && strings.HasPrefix(name, "--") {
			return p.setOptionValue(s, value)
		}
	}
	p.unknownOption = cmp.Or(p.unknownOption, word)
	return nil
}

// parseOption handles a word that is exactly an option. A required value is the next word, even if that word starts with a dash.
func (p *parser) parseOption(s *optionSpec) error {
	value := ""
	switch {
	case s.kind == requiredValue && len(p.words) == 0:
		return &Error{Text: fmt.Sprintf("error: option '%s' argument missing", s.option.Flags)}
	case s.kind == requiredValue, s.kind == optionalValue && len(p.words) > 0 && !looksLikeOption(p.words[0]):
		value = p.nextWord()
		p.recordVariadicWord(s, value, true)
	}
	if s.variadic {
		p.variadic = s
	}
	return p.setOptionValue(s, value)
}

// parseCluster handles a word that starts with a short option and has more letters: other switches, as in "-pc", or the value
// of the option, as in "-rVALUE". rest is the text after the first letter.
func (p *parser) parseCluster(s *optionSpec, rest string) error {
	if s.kind != noValue {
		return p.setOptionValue(s, rest)
	}
	p.words = slices.Insert(slices.Clone(p.words), 0, "-"+rest)
	return p.setOptionValue(s, "")
}

func (p *parser) recordVariadicWord(s *optionSpec, word string, isFirst bool) {
	if s.variadic {
		p.result.VariadicWord = VariadicWord{Option: "--" + s.option.Name(), Word: word, First: isFirst}
	}
}

func (p *parser) setOptionValue(s *optionSpec, value string) error {
	o := s.option
	p.result.Options[o.Name()] = append(p.result.Options[o.Name()], value)
	if preset := value == "" && s.kind == optionalValue; len(o.Choices) > 0 && !preset && !slices.Contains(o.Choices, value) {
		return invalidValueError(o, value, "Allowed choices are "+strings.Join(o.Choices, ", ")+".")
	}
	if o.Set == nil {
		return nil
	}
	if err := o.Set(value); errors.Is(err, ErrStop) {
		return err
	} else if err != nil {
		return invalidValueError(o, value, err.Error())
	}
	return nil
}

func invalidValueError(o *OptionDefinition, value, reason string) error {
	return &Error{Text: fmt.Sprintf("error: option '%s' argument '%s' is invalid. %s", o.Flags, value, reason)}
}

// UnknownCommandText returns the error about an unknown subcommand. It suggests the names that are similar.
func UnknownCommandText(word string, names []string) string {
	return "error: unknown command '" + word + "'" + nearestNamesLine("", word, names)
}

// nearestNamesLine returns the second line of an error, with its leading newline. It suggests the names nearest to a word,
// sorted and each after prefix; "" means that no name is similar. As in commander, a similar name differs from the word by
// at most three edits, and by fewer than 60 % of the letters.
func nearestNamesLine(prefix, word string, names []string) string {
	best := 3
	var near []string
	for _, candidate := range names {
		distance := diag.EditDistanceInBytes(word, candidate)
		if longer := max(len(word), len(candidate)); 10*(longer-distance) <= 4*longer || distance > best {
			continue
		}
		if distance < best {
			best, near = distance, nil
		}
		near = append(near, candidate)
	}
	slices.Sort(near)
	for i := range near {
		near[i] = prefix + near[i]
	}
	switch len(near) {
	case 0:
		return ""
	case 1:
		return "\n(Did you mean " + near[0] + "?)"
	default:
		return "\n(Did you mean one of " + strings.Join(near, ", ") + "?)"
	}
}

// suggestibleNames lists the long names that may be suggested, without dashes. If an option has two long spellings,
// only the second may be suggested: commander treats the first as the short one.
func suggestibleNames(options []OptionDefinition) []string {
	names := []string{"help"}
	for i := range options {
		spellings := parseOptionDefinition(options[i].Flags).spellings
		if last, long := strings.CutPrefix(spellings[len(spellings)-1], "--"); long && len(last) > 1 && !options[i].Hidden {
			names = append(names, last)
		}
	}
	return names
}
