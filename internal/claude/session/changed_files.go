package session

import (
	"hash/fnv"
	"strconv"

	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/simulator"
)

// changedFile is the transcript attachment for a file that was changed after the session wrote it.
type changedFile struct {
	Type     string            `json:"type"` // "edited_text_file"
	FileName string            `json:"filename"`
	Snippet  string            `json:"snippet"`
	Reread   rereadChangedFile `json:"rereadEntry"`
}

// rereadChangedFile describes the new content of a changed file, which the session has read again.
type rereadChangedFile struct {
	Timestamp int64  `json:"timestamp"` // time of the change, in Unix milliseconds
	Hash      string `json:"contentHash"`
	Length    int    `json:"contentLength"` // length in bytes
}

// changedFilesContext returns context about files that were changed after the session, or an agent, wrote them.
func changedFilesContext(changes []builtin.ChangedFile) []simulator.ContextFile {
	var all []simulator.ContextFile
	for _, file := range changes {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(file.Content))
		reread := rereadChangedFile{Timestamp: file.Modified.UnixMilli(), Hash: strconv.FormatUint(hash.Sum64(), 36), Length: len(file.Content)}
		all = append(all, simulator.ContextFile{
			Role: "system", Tool: "Read", Text: "The file " + file.Path + " was changed after you wrote it. These are the changed lines with their numbers:\n" + file.Snippet,
			Attachment: changedFile{Type: "edited_text_file", FileName: file.Path, Snippet: file.Snippet, Reread: reread},
		})
	}
	return all
}
