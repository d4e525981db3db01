package shellcmd

import "slices"

// ObstacleKind is a form of shell text whose effect is unknown before it runs.
type ObstacleKind int

// The kinds of obstacles.
const (
	NoObstacle                  ObstacleKind = iota
	ObstacleSubshell                         // ( … )
	ObstacleBackground                       // … &
	ObstacleBracesOrArithmetic               // { … } and (( … ))
	ObstacleFunction                         // name() { … }
	ObstacleCase                             // case … esac
	ObstacleCommandSubstitution              // $( … ) and backquotes
	ObstacleQuotedSubstitution               // "$( … )"
	ObstacleProcessSubstitution              // <( … )
	ObstacleBareVariable                     // $NAME
	ObstacleAssignedVariable                 // $NAME that the same script sets
	ObstacleBracedVariable                   // ${NAME}
	ObstacleAssignments                      // A=1 B=2 and no command
	ObstacleArithmetic                       // $((NAME+1)); Text = NAME
	ObstacleBraces                           // {a,b}
	ObstacleEscapedSpace                     // a\ b, or a continued line inside a word
	ObstacleExpandedHeredoc                  // << EOF, in which the text is expanded
	ObstacleUnclearRedirect                  // a redirection of a compound command, << EOF followed by other text on the line, or a descriptor above 9
	ObstacleHiddenRedirect                   // <> FILE or {name}> FILE
	ObstacleEval                             // eval and similar commands; Text is the command
	ObstacleArithmeticTest                   // [[ a -eq b ]]; Text = "[[ ... -eq ..."
	ObstacleSubscriptTest                    // test -v a[x]; Text = "test -v"
	ObstacleArrayAssignment                  // a=(x y)
	ObstacleSubscriptAssignment              // a[x]=y
	ObstacleCountingLoop                     // a loop such as for ((…))
	ObstacleDescriptorVariable               // {a[x]}<file
	ObstacleForeignSpace                     // a no-break space or similar character
	ObstacleNamedDirectory                   // ~[name]
	ObstacleEqualsExpansion                  // =command
	ObstacleQuotedBrace                      // {'a',b}
	ObstacleCodedText                        // $'…' and $"…"
	ObstacleLoneDollar                       // a$
	ObstacleUnparsed                         // a word that is =, or a comment after && or ||
	ObstacleClosedDescriptor                 // <&-
	ObstacleHiddenLine                       // a quoted line that begins with #
)

// Obstacle is the first construct of a script that prevents judging it by its simple commands.
type Obstacle struct {
	Kind ObstacleKind
	Text string // details of Kind; usually empty
}

// isLate reports whether the real CLI looks for this kind of obstacle after all others (observed with 2.1.330).
func (o Obstacle) isLate() bool {
	return o.Kind == NoObstacle || o.Kind == ObstacleBackground || o.Kind == ObstacleEval
}

// IsFoundInText reports whether this kind of obstacle is found in the plain text, without parsing. Such an obstacle is
// found even in a script with syntax errors.
func (o Obstacle) IsFoundInText() bool {
	return slices.Contains([]ObstacleKind{ObstacleEscapedSpace, ObstacleForeignSpace, ObstacleNamedDirectory, ObstacleEqualsExpansion, ObstacleQuotedBrace}, o.Kind)
}
