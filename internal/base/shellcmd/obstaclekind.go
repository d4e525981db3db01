package shellcmd

// ObstacleKind names a form of shell text whose effect is not known before it
// runs.
type ObstacleKind int

// The zero value is no obstacle.
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
	EscapedSpace                     // a\ b, and a line that a word is continued on
	OpenHeredoc                      // << EOF, whose text is expanded
	HeredocRedirect                  // << with > FILE behind it
	Evaluates                        // eval and its like; Text = the command
	ArithmeticTest                   // [[ a -eq b ]]; Text = "[[ ... -eq ..."
	SubscriptTest                    // test -v a[x]; Text = "test -v"
	List                             // a=(x y)
	Subscript                        // a[x]=y
	CountingLoop                     // for ((…))
	DescriptorVariable               // {a[x]}<file
	ForeignSpace                     // a no-break space and its like
	NamedDirectory                   // ~[name]
	EqualsExpansion                  // =command
	QuotedBrace                      // {'a',b}
	CodedText                        // $'…' and $"…"
	LoneDollar                       // a$
	ClosedDescriptor                 // <&-
	HiddenLine                       // a quoted line that begins with #
)

// Obstacle is the first thing in a script that keeps it from being judged by
// its simple commands.
type Obstacle struct {
	Kind ObstacleKind
	Text string // what Kind says; mostly empty
}

// InText tells whether the obstacle was found in the bare text, whether or not
// that can be parsed.
func (o Obstacle) InText() bool {
	switch o.Kind {
	case EscapedSpace, ForeignSpace, NamedDirectory, EqualsExpansion, QuotedBrace:
		return true
	default:
		return false
	}
}
