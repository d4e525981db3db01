// Package book stores books. A book is a directory with the captured screens (pages) of one version of the CLI, one renderer and
// one terminal size.
//
// The text of pages belongs to the vendor. Books are captured on the user's machine and live in a cache directory
// there; no part of a book belongs in the repository.
package book

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/proc"
)

// The renderers of the CLI.
const (
	RendererFullscreen = "fullscreen" // uses the alternate screen
	RendererInline     = "inline"     // prints below the shell's prompt
)

const tmuxBookDirSuffix = "-tmux"

// BookID identifies a book (a directory of captured screens) by version, renderer and terminal size.
type BookID struct {
	Version  string `json:"version,omitempty"`
	Renderer string `json:"renderer,omitempty"`
	Tmux     bool   `json:"tmux,omitempty"` // captured inside tmux, where the CLI shows other messages
	Cols     int    `json:"cols"`
	Rows     int    `json:"rows"`
}

// RelativeBookDir returns the directory of the book below the root: VERSION/RENDERER/COLSxROWS.
func (k BookID) RelativeBookDir() string {
	renderer := k.Renderer
	if k.Tmux {
		renderer += tmuxBookDirSuffix
	}
	return filepath.Join(k.Version, renderer, fmt.Sprintf("%dx%d", k.Cols, k.Rows))
}

// String returns the key in the form VERSION/RENDERER/COLSxROWS, for messages.
func (k BookID) String() string { return filepath.ToSlash(k.RelativeBookDir()) }

// CacheRoot returns the cache directory in which the captured screens of all versions are stored.
func CacheRoot(environ []string) string {
	cache := cmp.Or(proc.Getenv(environ, "XDG_CACHE_HOME"), filepath.Join(proc.Getenv(environ, "HOME"), ".cache"))
	return filepath.Join(cache, "claudeless", "screens")
}

// Book is a directory with the captured screens of one version, renderer and terminal size.
type Book struct {
	BookID
	Dir string
}

// New returns the book with this key below root; its directory may not exist yet.
func New(root string, k BookID) Book {
	return Book{BookID: k, Dir: filepath.Join(root, k.RelativeBookDir())}
}

// List returns the books below root, books of older versions first. A root that does not exist has none.
func List(root string) ([]Book, error) {
	dirs, err := filepath.Glob(filepath.Join(root, "*", "*", "*x*"))
	if err != nil {
		return nil, err
	}
	var books []Book
	for _, dir := range dirs {
		k := BookID{Version: filepath.Base(filepath.Dir(filepath.Dir(dir)))}
		k.Renderer, k.Tmux = strings.CutSuffix(filepath.Base(filepath.Dir(dir)), tmuxBookDirSuffix)
		if n, err := fmt.Sscanf(filepath.Base(dir), "%dx%d", &k.Cols, &k.Rows); n == 2 && err == nil {
			books = append(books, Book{BookID: k, Dir: dir})
		}
	}
	slices.SortStableFunc(books, func(a, b Book) int { return CompareVersions(a.Version, b.Version) })
	return books, nil
}

// Find returns the books below root whose version is versionOrDir. If it is the path of a directory, such as ./books, it
// returns the books in that directory instead.
func Find(root, versionOrDir string) ([]Book, error) {
	if info, err := os.Stat(versionOrDir); err == nil && info.IsDir() && strings.ContainsRune(versionOrDir, filepath.Separator) {
		return booksInDirectory(versionOrDir)
	}
	all, err := List(root)
	return slices.DeleteFunc(all, func(b Book) bool { return b.Version != versionOrDir }), err
}

func booksInDirectory(dir string) ([]Book, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for _, root := range []string{dir, filepath.Dir(dir), filepath.Dir(filepath.Dir(dir)), filepath.Dir(filepath.Dir(filepath.Dir(dir)))} {
		all, err := List(root)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(b Book) bool {
			return b.Dir != dir && !strings.HasPrefix(b.Dir, dir+string(filepath.Separator))
		})
		if len(all) > 0 {
			return all, nil
		}
	}
	return nil, nil
}

// CompareVersions returns -1, 0 or 1 if a is less than, equal to or greater than b. It compares their parts as numbers.
func CompareVersions(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(x), len(y)) {
		m, errM := strconv.Atoi(x[i])
		n, errN := strconv.Atoi(y[i])
		c := cmp.Compare(m, n)
		if errM != nil || errN != nil {
			c = strings.Compare(x[i], y[i])
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x), len(y))
}

// NearestBook returns the book of captured screens that suits a terminal best: if possible with the same renderer and kind of
// terminal, then with the nearest size. ok is false if books is empty.
func NearestBook(books []Book, k BookID) (b Book, ok bool) {
	if len(books) == 0 {
		return Book{}, false
	}
	distance := func(b Book) int {
		d := max(b.Cols-k.Cols, k.Cols-b.Cols) + max(b.Rows-k.Rows, k.Rows-b.Rows)
		if b.Renderer != k.Renderer {
			d += 10_000
		}
		if b.Tmux != k.Tmux {
			d += 5_000
		}
		return d
	}
	return slices.MinFunc(books, func(a, b Book) int { return cmp.Compare(distance(a), distance(b)) }), true
}

// PageNames returns the sorted names of the captured screens, each in the form TAPE.PAGE.
func (b Book) PageNames() ([]string, error) {
	entries, err := os.ReadDir(b.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// Pages reads all captured screens of the book, sorted by name.
func (b Book) Pages() ([]Page, error) {
	names, err := b.PageNames()
	if err != nil {
		return nil, err
	}
	pages, errs := make([]Page, len(names)), make([]error, len(names))
	var readers sync.WaitGroup // concurrent: the interactive claude reads a book before it draws
	for i, name := range names {
		readers.Go(func() { pages[i], errs[i] = b.Read(name) })
	}
	readers.Wait()
	return pages, cmp.Or(errs...)
}
