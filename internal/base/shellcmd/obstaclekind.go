package shellcmd

import "slices"

// ObstacleKind is a form of shell text whose effect is unknown before it runs.
type ObstacleKind int

// The kinds of obstacles.
const (
	NoObstacle                                 ObstacleKind = iota
	ObstacleSubshell                                        // ( … )
	ObstacleBackground                                      // … &
	ObstacleBraceGroupOrArithmeticCommand                   // { … } and (( … ))
	ObstacleFunction                                        // name() { … }
	ObstacleCase                                            // case … esac
	ObstacleCommandSubstitution                             // $( … ) and backquotes
	ObstacleCommandSubstitutionInDoubleQuotes               // "$( … )"
	ObstacleProcessSubstitution                             // <( … )
	ObstacleBareVariable                                    // $NAME
	ObstacleVariableSetByScript                             // $NAME that the same script sets
	ObstacleBracedVariable                                  // ${NAME}
	ObstacleSeveralAssignmentsWithoutCommand                // A=1 B=2 and no command
	ObstacleArithmetic                                      // $((NAME+1)); Text = NAME
	ObstacleBraces                                          // {a,b}
	ObstacleBackslashBeforeSpaceOrLineEnd                   // a\ b, or a continued line inside a word
	ObstacleExpandedHeredoc                                 // << EOF, in which the text is expanded
	ObstacleUnclearRedirect                                 // a redirection of a compound command, << EOF followed by other text on the line, or a descriptor above 9
	ObstacleReadWriteOrNamedDescriptorRedirect              // <> FILE or {name}> FILE
	ObstacleEval                                            // eval and similar commands; Text is the command
	ObstacleArithmeticTest                                  // [[ a -eq b ]]; Text = "[[ ... -eq ..."
	ObstacleVariableTestWithSubscript                       // test -v a[x]; Text = "test -v"
	ObstacleArrayAssignment                                 // a=(x y)
	ObstacleArrayElementAssignment                          // a[x]=y
	ObstacleCStyleForLoop                                   // a loop such as for ((…))
	ObstacleDescriptorStoredInArrayElement                  // {a[x]}<file
	ObstacleUnicodeSpaceCharacter                           // a no-break space or similar character
	ObstacleZshDynamicNamedDirectory                        // ~[name]
	ObstacleZshEqualsExpansion                              // =command
	ObstacleQuoteInsideBraces                               // {'a',b}
	ObstacleDollarQuotedText                                // $'…' and $"…"
	ObstacleLoneDollar                                      // a$
	ObstacleUnparsed                                        // the word =, or a comment after && or ||
	ObstacleRedirectClosesDescriptor                        // <&-
	ObstacleQuotedHashLine                                  // a quoted line that begins with #
)

// Obstacle is the first construct of a script that prevents judging it by its simple commands.
type Obstacle struct {
	Kind ObstacleKind
	Text string // details of Kind; usually empty
}

// isCheckedLast reports whether the real CLI looks for this kind of obstacle after all others (observed with 2.1.330).
func (o Obstacle) isCheckedLast() bool {
	return o.Kind == NoObstacle || o.Kind == ObstacleBackground || o.Kind == ObstacleEval
}

// IsFoundWithoutParsing reports whether this kind of obstacle is found in the plain text, without parsing. Such an obstacle is
// found even in a script with syntax errors.
func (o Obstacle) IsFoundWithoutParsing() bool {
	return slices.Contains([]ObstacleKind{ObstacleBackslashBeforeSpaceOrLineEnd, ObstacleUnicodeSpaceCharacter, ObstacleZshDynamicNamedDirectory, ObstacleZshEqualsExpansion, ObstacleQuoteInsideBraces}, o.Kind)
}
