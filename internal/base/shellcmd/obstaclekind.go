package shellcmd

import "slices"

// ObstacleKind is a form of shell text whose effect is unknown before it runs.
type ObstacleKind string

// The kinds of obstacles.
const (
	NoObstacle                                 ObstacleKind = ""
	ObstacleSubshell                           ObstacleKind = "subshell"                           // ( … )
	ObstacleBackground                         ObstacleKind = "background"                         // … &
	ObstacleBraceGroupOrArithmeticCommand      ObstacleKind = "braceGroupOrArithmeticCommand"      // { … } and (( … ))
	ObstacleFunction                           ObstacleKind = "function"                           // name() { … }
	ObstacleCase                               ObstacleKind = "case"                               // case … esac
	ObstacleCommandSubstitution                ObstacleKind = "commandSubstitution"                // $( … ) and backquotes
	ObstacleCommandSubstitutionInDoubleQuotes  ObstacleKind = "commandSubstitutionInDoubleQuotes"  // "$( … )"
	ObstacleProcessSubstitution                ObstacleKind = "processSubstitution"                // <( … )
	ObstacleBareVariable                       ObstacleKind = "bareVariable"                       // $NAME
	ObstacleVariableSetByScript                ObstacleKind = "variableSetByScript"                // $NAME that the same script sets
	ObstacleBracedVariable                     ObstacleKind = "bracedVariable"                     // ${NAME}
	ObstacleSeveralAssignmentsWithoutCommand   ObstacleKind = "severalAssignmentsWithoutCommand"   // A=1 B=2 and no command
	ObstacleArithmetic                         ObstacleKind = "arithmetic"                         // $((NAME+1)); Text = NAME
	ObstacleBraces                             ObstacleKind = "braces"                             // {a,b}
	ObstacleBackslashBeforeSpaceOrLineEnd      ObstacleKind = "backslashBeforeSpaceOrLineEnd"      // a\ b, or a continued line inside a word
	ObstacleExpandedHeredoc                    ObstacleKind = "expandedHeredoc"                    // << EOF, in which the text is expanded; Text = "pipe" or "list" if a pipe, && or || follows on the line
	ObstacleUnclearRedirect                    ObstacleKind = "unclearRedirect"                    // a redirection of a compound command, << EOF followed by other text on the line (Text as above), or a descriptor above 9
	ObstacleReadWriteOrNamedDescriptorRedirect ObstacleKind = "readWriteOrNamedDescriptorRedirect" // <> FILE or {name}> FILE
	ObstacleEval                               ObstacleKind = "eval"                               // eval and similar commands; Text is the command
	ObstacleArithmeticTest                     ObstacleKind = "arithmeticTest"                     // [[ a -eq b ]]; Text = "[[ ... -eq ..."
	ObstacleVariableTestWithSubscript          ObstacleKind = "variableTestWithSubscript"          // test -v a[x]; Text = "test -v"
	ObstacleArrayAssignment                    ObstacleKind = "arrayAssignment"                    // a=(x y)
	ObstacleArrayElementAssignment             ObstacleKind = "arrayElementAssignment"             // a[x]=y
	ObstacleCStyleForLoop                      ObstacleKind = "cStyleForLoop"                      // a loop such as for ((…))
	ObstacleDescriptorStoredInArrayElement     ObstacleKind = "descriptorStoredInArrayElement"     // {a[x]}<file
	ObstacleUnicodeSpaceCharacter              ObstacleKind = "unicodeSpaceCharacter"              // a no-break space or similar character
	ObstacleZshDynamicNamedDirectory           ObstacleKind = "zshDynamicNamedDirectory"           // ~[name]
	ObstacleZshEqualsExpansion                 ObstacleKind = "zshEqualsExpansion"                 // =command
	ObstacleQuoteInsideBraces                  ObstacleKind = "quoteInsideBraces"                  // {'a',b}
	ObstacleDollarQuotedText                   ObstacleKind = "dollarQuotedText"                   // $'…' and $"…"
	ObstacleLoneDollar                         ObstacleKind = "loneDollar"                         // a$
	ObstacleUnparsed                           ObstacleKind = "unparsed"                           // the word =, or a comment after && or ||
	ObstacleRedirectClosesDescriptor           ObstacleKind = "redirectClosesDescriptor"           // <&-
	ObstacleQuotedHashLine                     ObstacleKind = "quotedHashLine"                     // a quoted line that begins with #
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
