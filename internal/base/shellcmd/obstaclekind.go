package shellcmd

// ObstacleKind is a form of shell text whose effect is unknown before it runs.
type ObstacleKind int

// The kinds of obstacles.
const (
	NoObstacle          ObstacleKind = iota
	Subshell                         // ( … )
	Background                       // … &
	Group                            // { … } and (( … ))
	Function                         // name() { … }
	Case                             // case … esac
	Nested                           // $( … ) and backquotes
	NestedInQuotes                   // "$( … )"
	ProcessSubstitution              // <( … )
	BareVariable                     // $NAME
	AssignedVariable                 // $NAME that the same script sets
	BracedVariable                   // ${NAME}
	Assignments                      // A=1 B=2 and no command
	Arithmetic                       // $((NAME+1)); Text = NAME
	Braces                           // {a,b}
	EscapedSpace                     // a\ b, or a continued line inside a word
	OpenHeredoc                      // << EOF, in which the text is expanded
	UnclearRedirect                  // a redirection of a compound command, << followed by > FILE, or a descriptor above 9
	HiddenRedirect                   // <> FILE or {name}> FILE
	Evaluates                        // eval and similar commands; Text = the command
	ArithmeticTest                   // [[ a -eq b ]]; Text = "[[ ... -eq ..."
	SubscriptTest                    // test -v a[x]; Text = "test -v"
	List                             // a=(x y)
	Subscript                        // a[x]=y
	CountingLoop                     // a loop such as for ((…))
	DescriptorVariable               // {a[x]}<file
	ForeignSpace                     // a no-break space or similar character
	NamedDirectory                   // ~[name]
	EqualsExpansion                  // =command
	QuotedBrace                      // {'a',b}
	CodedText                        // $'…' and $"…"
	LoneDollar                       // a$
	LoneEquals                       // a word that is =
	ClosedDescriptor                 // <&-
	HiddenLine                       // a quoted line that begins with #
)

// Obstacle is the first construct of a script that prevents judging it by its simple commands.
type Obstacle struct {
	Kind ObstacleKind
	Text string // details of Kind; usually empty
}

// InText reports whether the obstacle was found in the plain text, whether or not the text can be parsed.
func (o Obstacle) InText() bool {
	switch o.Kind {
	case EscapedSpace, ForeignSpace, NamedDirectory, EqualsExpansion, QuotedBrace:
		return true
	default:
		return false
	}
}
