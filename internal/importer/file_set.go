package importer

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/record/redact"
)

// FileSetWriter writes files into a directory, all or none: each is written under a temporary name, searched for secrets, and
// moved into place at the end. Existing files are kept unless overwriting is allowed. Only one goroutine may use it.
type FileSetWriter struct {
	temporaryDir string        // temporary location
	outDir       string        // destination; empty means none
	createdDir   string        // output directory that NewUncommittedFileSet created
	temp         *proc.TempDir // owns dir; nil means dir is inside outDir
	names        []string      // names with slashes, in the order of creation
	stamps       map[string]string
	force        bool
	redactor     *redact.Redactor // nil means files are not searched
	leaks        []Leak
	err          error
}

// FileSetOptions configure a FileSetWriter.
type FileSetOptions struct {
	Out   string // output directory; empty means that the files stay in a temporary directory
	Force bool   // overwrite existing files
	Raw   bool   // do not search for secrets
}

// NewUncommittedFileSet starts a file set. The caller must call Discard at the end.
func NewUncommittedFileSet(options FileSetOptions) (*FileSetWriter, error) {
	k := &FileSetWriter{outDir: options.Out, force: options.Force, stamps: map[string]string{}}
	if !options.Raw {
		k.redactor = redact.New(redact.Options{})
	}
	out := options.Out
	if out == "" {
		var err error
		if k.temp, err = proc.MakeTempDir("claudeless-import-"); err != nil {
			return nil, err
		}
		k.temporaryDir = k.temp.Path
		return k, nil
	}
	if _, err := os.Lstat(out); errors.Is(err, fs.ErrNotExist) {
		k.createdDir = out
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	var err error
	k.temporaryDir, err = os.MkdirTemp(out, ".import-")
	return k, err
}

// Discard removes all uncommitted files. Further calls have no effect.
func (k *FileSetWriter) Discard() {
	if k.temp == nil {
		_ = os.RemoveAll(k.temporaryDir) // best effort: the directory belongs to the file set
	}
	_ = k.temp.Remove()
	if k.createdDir != "" {
		_ = os.Remove(k.createdDir) // fails if the directory is not empty
	}
}

// AddFileWithContent writes a complete file. Err reports a failure.
func (k *FileSetWriter) AddFileWithContent(relativeName string, content []byte) {
	k.stamps[relativeName] = digestOfTrimmedText(string(content))
	f := k.Create(relativeName)
	f.Write(content)
	f.Close()
}

// Err returns the first write failure.
func (k *FileSetWriter) Err() error { return k.err }

func (k *FileSetWriter) recordFailure(name string, err error) {
	if err != nil && k.err == nil {
		k.err = fmt.Errorf("writing %s: %w", name, err)
	}
}

// Create starts a file, which the caller must close. name uses slashes and is relative to the file set.
func (k *FileSetWriter) Create(name string) *OutputFile {
	k.names = append(k.names, name)
	f := &OutputFile{set: k, name: name}
	path := k.temporaryPath(name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		f.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	}
	k.recordFailure(name, err)
	return f
}

func (k *FileSetWriter) temporaryPath(name string) string {
	return filepath.Join(k.temporaryDir, filepath.FromSlash(name))
}

// OutputFile is a file that is being written. [FileSetWriter.Err] reports failures.
type OutputFile struct {
	set  *FileSetWriter
	name string
	file *os.File // nil means that the file could not be created
}

// Write adds whole lines.
func (f *OutputFile) Write(data []byte) {
	if f.file != nil {
		_, err := f.file.Write(data)
		f.set.recordFailure(f.name, err)
	}
}

// Close finishes the file and searches it for secrets.
func (f *OutputFile) Close() {
	if f.file == nil {
		return
	}
	f.set.recordFailure(f.name, f.file.Close())
	f.file = nil
	if f.set.redactor != nil {
		leaks, err := findSecretsInFile(f.set.temporaryPath(f.name), f.name, f.set.redactor)
		f.set.recordFailure(f.name, err)
		f.set.leaks = append(f.set.leaks, leaks...)
	}
}

// SecretsFoundSoFar returns the secrets found so far.
func (k *FileSetWriter) SecretsFoundSoFar() []Leak { return k.leaks }

// CopyTo copies the files into a new directory.
func (k *FileSetWriter) CopyTo(dir string) error { return os.CopyFS(dir, os.DirFS(k.temporaryDir)) }

// CopyFile copies one of the files to w.
func (k *FileSetWriter) CopyFile(name string, w io.Writer) error {
	f, err := os.Open(k.temporaryPath(name))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// CommitWithoutSecretCheck moves the files to their destination. An existing file is an error unless Force is set.
func (k *FileSetWriter) CommitWithoutSecretCheck() (written []string, err error) {
	if k.err != nil {
		return nil, k.err
	}
	for _, name := range k.names {
		to := filepath.Join(k.outDir, filepath.FromSlash(name))
		if _, err := os.Lstat(to); err == nil && !k.force {
			return nil, fmt.Errorf("%s already exists; use --force to overwrite it", to)
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		written = append(written, to)
	}
	for _, to := range written {
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return nil, err
		}
	}
	for i, to := range written {
		if err := os.Rename(k.temporaryPath(k.names[i]), to); err != nil {
			return nil, err
		}
	}
	return written, nil
}

// FormatSectionWithBodyDigest returns a section of a file: a comment with the title and a digest of the body, then the body. A
// later import compares the digest with the body to see whether the user has edited the section.
func FormatSectionWithBodyDigest(title, body string) string {
	return "# " + title + "; import " + digestOfTrimmedText(body) + "\n" + body
}

// digestOfTrimmedText returns a digest of a text, without surrounding blank lines.
func digestOfTrimmedText(text string) string {
	return fmt.Sprintf("%.6x", sha256.Sum256([]byte(strings.TrimSpace(text))))
}

// sectionWithBodyDigest is a section of a text. The title line contains the digest that the body had at the time of the import.
type sectionWithBodyDigest struct {
	titleWordAndNumber, title, bodyDigest, body string
	lineNumber                                  int
}

func (s *sectionWithBodyDigest) isEditedSinceImport() bool {
	return digestOfTrimmedText(s.body) != s.bodyDigest
}

func (s *sectionWithBodyDigest) text() string {
	return "# " + s.title + "; import " + s.bodyDigest + "\n" + s.body
}

var sectionTitleWithDigestPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^# (.*); import ([0-9a-f]{12})\r?\n`) })

// splitSections splits a text into the sections that [FormatSectionWithBodyDigest] wrote; before is the text above them. The
// key of a section is the first word of its title and a number: "files 2" is the second one that begins with "files".
func splitSections(text string) (before string, all []sectionWithBodyDigest) {
	places := sectionTitleWithDigestPattern().FindAllStringSubmatchIndex(text, -1)
	if places == nil {
		return text, nil
	}
	seen := map[string]int{}
	for i, m := range places {
		end := len(text)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		title := text[m[2]:m[3]]
		key := title[:max(strings.IndexAny(title+" ", ": "), 0)]
		seen[key]++
		all = append(all, sectionWithBodyDigest{titleWordAndNumber: fmt.Sprintf("%s %d", key, seen[key]), title: title, bodyDigest: text[m[4]:m[5]], body: text[m[1]:end], lineNumber: 1 + strings.Count(text[:m[0]], "\n")})
	}
	return text[:places[0][0]], all
}

// mergeSectionsKeepingUserEdits returns newlyImportedText, but sections that the user has edited in existingText keep
// their old content. notes lists the sections that differ from newlyImportedText, and removed sections.
func mergeSectionsKeepingUserEdits(mergedFile, existingText, newlyImportedText string) (merged string, notes []string) {
	before, had := splitSections(existingText)
	_, has := splitSections(newlyImportedText)
	byKey := map[string]*sectionWithBodyDigest{}
	for i := range had {
		byKey[had[i].titleWordAndNumber] = &had[i]
	}
	var b strings.Builder
	b.WriteString(before)
	var last *sectionWithBodyDigest // first section about tools, calls or files; old rules that are kept precede it
	for i := range has {
		s := &has[i]
		o := byKey[s.titleWordAndNumber]
		delete(byKey, s.titleWordAndNumber)
		if o != nil && o.isEditedSinceImport() {
			if o.bodyDigest != s.bodyDigest {
				notes = append(notes, fmt.Sprintf("%s:%d: this rule was edited by hand and differs from the new session (%s); your version is kept", mergedFile, o.lineNumber, s.title))
			}
			s = o
		}
		if last == nil && s.isAboutToolsCallsOrFiles() {
			last = s
			b.WriteString(keepRemainingEditedSections(mergedFile, byKey, had, &notes))
		}
		b.WriteString(s.text())
	}
	if last == nil {
		b.WriteString(keepRemainingEditedSections(mergedFile, byKey, had, &notes))
	}
	return b.String(), notes
}

func (s *sectionWithBodyDigest) isAboutToolsCallsOrFiles() bool {
	return slices.ContainsFunc([]string{"tools ", "calls ", "files "}, func(word string) bool { return strings.HasPrefix(s.titleWordAndNumber, word) })
}

func keepRemainingEditedSections(name string, remaining map[string]*sectionWithBodyDigest, order []sectionWithBodyDigest, notes *[]string) string {
	var b strings.Builder
	for i := range order {
		s := &order[i]
		switch {
		case remaining[s.titleWordAndNumber] == nil || s.isAboutToolsCallsOrFiles():
		case s.isEditedSinceImport():
			*notes = append(*notes, fmt.Sprintf("%s:%d: this rule is not in the new session, but it was edited by hand; your version is kept", name, s.lineNumber))
			b.WriteString(s.text())
		default:
			*notes = append(*notes, fmt.Sprintf("%s:%d: this rule is not in the new session; it was removed", name, s.lineNumber))
		}
	}
	return b.String()
}

// MergeUserEditsOfExistingFiles merges the file set with the existing files, and keeps what the user has edited. A
// digest of the original text shows whether a text was edited. In scenarioFileName, each section has its own digest;
// the digests of all other files are in its section "files". notes lists the kept edits that differ from new content.
func (k *FileSetWriter) MergeUserEditsOfExistingFiles(scenarioFileName string) (notes []string, err error) {
	if k.err != nil {
		return nil, k.err
	}
	at := func(name string) string { return filepath.Join(k.outDir, filepath.FromSlash(name)) }
	old, err := os.ReadFile(at(scenarioFileName))
	if err != nil {
		return nil, err
	}
	fresh, err := os.ReadFile(k.temporaryPath(scenarioFileName))
	if err != nil {
		return nil, err
	}
	base, now := parseFileDigestsByName(string(old)), parseFileDigestsByName(string(fresh))
	if len(base) == 0 {
		return nil, fmt.Errorf("%s was not written by this version of `import`; use --force to overwrite it", at(scenarioFileName))
	}
	merged, notes := mergeSectionsKeepingUserEdits(at(scenarioFileName), string(old), string(fresh))
	if err := os.WriteFile(k.temporaryPath(scenarioFileName), []byte(merged), 0o644); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if name == "" {
			continue
		}
		theirs, err := os.ReadFile(at(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if digestOfTrimmedText(string(theirs)) == base[name] {
			continue
		}
		if base[name] != now[name] && digestOfTrimmedText(string(theirs)) != now[name] {
			notes = append(notes, fmt.Sprintf("%s: the file was edited by hand and differs from the new import; your version is kept", at(name)))
		}
		if err := os.WriteFile(k.temporaryPath(name), theirs, 0o644); err != nil {
			return nil, err
		}
	}
	k.force = true // Commit may replace the existing files, because the set now contains their edits
	return notes, nil
}

// FileDigestCommentLines returns the body of the section "files": a comment with the digest of each file so far.
func (k *FileSetWriter) FileDigestCommentLines() string {
	var b strings.Builder
	for _, name := range k.names {
		if sum, ok := k.stamps[name]; ok {
			fmt.Fprintf(&b, "# %s %s\n", sum, name)
		}
	}
	return b.String()
}

var fileDigestCommentLinePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^# ([0-9a-f]{12}) (.+?)\r?$`) })

// parseFileDigestsByName returns the digests in the section "files", by file name. If the text has any sections, the
// map also has an entry with an empty name, so an empty map means that the text has no sections.
func parseFileDigestsByName(scenarioText string) map[string]string {
	_, all := splitSections(scenarioText)
	out := map[string]string{}
	for i := range all {
		if strings.HasPrefix(all[i].titleWordAndNumber, "files ") {
			for _, m := range fileDigestCommentLinePattern().FindAllStringSubmatch(all[i].body, -1) {
				out[m[2]] = m[1]
			}
		}
	}
	if len(all) > 0 {
		out[""] = "" // shows that the text has sections
	}
	return out
}
