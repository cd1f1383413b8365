package githttp

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Repo is a bare repository on disk. Commits depend only on what is committed: the same calls
// give the same hashes on every machine. Only one goroutine may write to a Repo.
type Repo struct {
	Dir string
}

// Author and committer of every commit that a Repo makes.
const (
	AuthorName  = "Ada Example"
	AuthorEmail = "ada@example.com"
)

// epoch is the date of a first commit; a commit is a minute after its parent.
var epoch = time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)

// A Change is what a commit does to the tree before it.
type Change struct {
	Message string // "change" if empty
	Replace bool   // begin with an empty tree
	Remove  []string
	Files   map[string]string      // path → content
	Modes   map[string]fs.FileMode // path → 0o755 for an executable, fs.ModeSymlink for a link to its content
}

// Create creates an empty bare repository whose default branch is main. Existing files in dir
// are kept.
func Create(dir string) (*Repo, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	r := &Repo{Dir: dir}
	_, err := r.Git("init", "--bare", "--quiet", "--initial-branch=main", ".")
	return r, err
}

// Change adds a commit to a branch, which is created if necessary, and returns its hash.
func (r *Repo) Change(branch string, c Change) (string, error) {
	script, err := r.script(branch, c)
	if err != nil {
		return "", err
	}
	if _, err := r.git(script, "fast-import", "--quiet", "--date-format=raw"); err != nil {
		return "", fmt.Errorf("commit on %s: %w", branch, err)
	}
	return r.Head(branch)
}

// script returns the change in the format of git fast-import.
func (r *Repo) script(branch string, c Change) ([]byte, error) {
	var out bytes.Buffer
	data := func(text string) { fmt.Fprintf(&out, "data %d\n%s\n", len(text), text) }

	date, parent, err := r.parent(branch)
	if err != nil {
		return nil, err
	}
	message := c.Message
	if message == "" {
		message = "change"
	}
	fmt.Fprintf(&out, "commit refs/heads/%s\n", branch)
	fmt.Fprintf(&out, "committer %s <%s> %d +0000\n", AuthorName, AuthorEmail, date)
	data(message + "\n")
	if parent != "" {
		fmt.Fprintf(&out, "from %s\n", parent)
	}
	if c.Replace {
		out.WriteString("deleteall\n")
	}
	for _, path := range c.Remove {
		fmt.Fprintf(&out, "D %s\n", quote(path))
	}
	for _, path := range slices.Sorted(maps.Keys(c.Files)) {
		fmt.Fprintf(&out, "M %s inline %s\n", gitMode(c.Modes[path]), quote(path))
		data(c.Files[path])
	}
	return out.Bytes(), nil
}

// parent returns the head of a branch, if it exists, and the date of the next commit.
func (r *Repo) parent(branch string) (date int64, hash string, err error) {
	found, err := r.Git("for-each-ref", "--format=%(objectname) %(committerdate:unix)", "refs/heads/"+branch)
	if err != nil {
		return 0, "", err
	}
	if found == "" {
		return epoch.Unix(), "", nil
	}
	if _, err := fmt.Sscanf(found, "%s %d", &hash, &date); err != nil {
		return 0, "", fmt.Errorf("head of %s is %q: %w", branch, found, err)
	}
	return date + 60, hash, nil
}

func gitMode(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "120000"
	case mode&0o111 != 0:
		return "100755"
	default:
		return "100644"
	}
}

var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func quote(path string) string { return `"` + quoted.Replace(path) + `"` }

// Head returns the hash that a branch points at.
func (r *Repo) Head(branch string) (string, error) {
	return r.Git("rev-parse", "--verify", "--quiet", "--end-of-options", "refs/heads/"+branch)
}

// ForcePush makes a branch point at a commit, wherever it pointed before: what a
// forced push does.
func (r *Repo) ForcePush(branch, hash string) error {
	_, err := r.Git("update-ref", "refs/heads/"+branch, hash)
	return err
}

// DeleteBranch removes a branch. Its commits stay in the repository.
func (r *Repo) DeleteBranch(branch string) error {
	_, err := r.Git("update-ref", "-d", "refs/heads/"+branch)
	return err
}

// Git runs git in the repository and returns what it prints, without the last
// line break.
func (r *Repo) Git(args ...string) (string, error) { return r.git(nil, args...) }

func (r *Repo) git(stdin []byte, args ...string) (string, error) {
	return run(r.Dir, stdin, args...)
}

// Git runs git in a directory with an isolated configuration, and returns its output without the
// last line break.
func Git(dir string, args ...string) (string, error) { return run(dir, nil, args...) }

func run(dir string, stdin []byte, args ...string) (string, error) {
	command := exec.Command("git", args...)
	command.Dir = dir
	command.Env = environment()
	command.Stdin = bytes.NewReader(stdin)
	var out, problem bytes.Buffer
	command.Stdout, command.Stderr = &out, &problem
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(problem.String()))
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// environment returns the environment without variables that affect git.
func environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "GIT_")
	})
	return append(env, isolation()...)
}

func isolation() []string {
	date := fmt.Sprintf("%d +0000", epoch.Unix())
	return []string{
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_CONFIG_SYSTEM=" + os.DevNull,
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=" + AuthorName,
		"GIT_AUTHOR_EMAIL=" + AuthorEmail,
		"GIT_AUTHOR_DATE=" + date,
		"GIT_COMMITTER_NAME=" + AuthorName,
		"GIT_COMMITTER_EMAIL=" + AuthorEmail,
		"GIT_COMMITTER_DATE=" + date,
		"LC_ALL=C",
	}
}

// Tree reads the files below a directory as the Files of a Change. Links and
// empty directories are left out.
func Tree(dir string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = string(data)
		return err
	})
	return files, err
}
