package build

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/lockfile"
)

// Remotes are the repositories that remote bases and charts are in.
type Remotes struct {
	// Lock says which commit or chart is used for a reference, and LockFile is its path.
	Lock     lockfile.File
	LockFile string
	// Files returns the files of a commit, without fetching it. The error says why they are not there; nil has none.
	Files func(url, commit string) (fs.FS, error)
	// Charts returns the files of a chart that is locked, as Files does for those of commits.
	Charts func(lockfile.Chart) (fs.FS, error)
}

// A RemoteBase is a repository that a kustomization refers to.
type RemoteBase struct {
	// Base has no commit if none is locked.
	lockfile.Base
	// Missing says that the commit is locked and was not fetched.
	Missing bool
}

// A remoteAddress is a directory of another repository, or a file of it.
type remoteAddress struct {
	url, ref, dir string
	isFile        bool
}

var manifestName = regexp.MustCompile(`^[^?]*\.(ya?ml|json)\s*(\?|$)`)

// parseRemote parses a reference as kustomize does: HOST/ORG/REPOSITORY/DIR, where //, .git or _git/ say where the
// repository ends if it has not two parts, with ref, version, timeout and submodules behind a question mark. The
// timeout has no effect, since fetches are limited by the configuration, and submodules are never fetched. The address of
// a file is one of [rawFile].
func parseRemote(text string) (remoteAddress, error) {
	if a, is := rawFile(text); is {
		return a, nil
	}
	rest := strings.TrimSpace(text)
	if len(rest) >= len("git::") && strings.EqualFold(rest[:len("git::")], "git::") {
		rest = rest[len("git::"):]
	}
	rest, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return remoteAddress{}, fmt.Errorf("what follows the question mark is no query")
	}
	a := remoteAddress{ref: values.Get("ref")}
	if a.ref == "" {
		a.ref = values.Get("version")
	}
	host, rest, err := splitHost(rest)
	if err != nil {
		return a, err
	}
	repository, dir := splitRepository(rest, host == "file://")
	if repository == "" {
		return a, fmt.Errorf("it names no repository; write HOST/ORGANIZATION/REPOSITORY, and // in front of the directory")
	}
	if a.dir = path.Clean(strings.TrimLeft(dir, "/")); a.dir == ".." || strings.HasPrefix(a.dir, "../") {
		return a, fmt.Errorf("its directory is outside of the repository")
	}
	a.url = host + strings.TrimRight(repository, "/")
	return a, nil
}

// rawFile parses the address of a file of a repository on GitHub: with /raw/REF/FILE behind the repository, or on its host for such
// files.
func rawFile(text string) (remoteAddress, bool) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme != "https" || u.RawQuery != "" {
		return remoteAddress{}, false
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	switch {
	case u.Host == "raw.githubusercontent.com":
	case u.Host == "github.com" && len(parts) > 2 && parts[2] == "raw":
		parts = slices.Delete(parts, 2, 3)
	default:
		return remoteAddress{}, false
	}
	if len(parts) > 4 && parts[2] == "refs" && (parts[3] == "heads" || parts[3] == "tags") {
		parts = slices.Delete(parts, 2, 4)
	}
	if len(parts) < 4 || slices.Contains(parts, "..") {
		return remoteAddress{}, false
	}
	return remoteAddress{url: "https://github.com/" + parts[0] + "/" + parts[1], ref: parts[2], dir: path.Join(parts[3:]...), isFile: true}, true
}

var userName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]*@`)

// splitHost splits an address behind the host; of a file nothing is in front of the path.
func splitHost(text string) (host, rest string, err error) {
	scheme := ""
	if at := strings.Index(text, "://"); at >= 0 {
		scheme, text = strings.ToLower(text[:at+len("://")]), text[at+len("://"):]
	}
	switch scheme {
	case "file://":
		return scheme, text, nil
	case "", "https://", "http://", "ssh://":
	default:
		return "", "", fmt.Errorf("scheme %s is not supported; use https:// or ssh://", scheme)
	}
	user := userName.FindString(text)
	text = text[len(user):]
	lower := strings.ToLower(text)
	github := strings.HasPrefix(lower, "github.com/") || strings.HasPrefix(lower, "github.com:")
	if scheme == "" && user == "" && !github {
		return "", "", fmt.Errorf("it has no scheme; write https:// in front")
	}
	end := strings.IndexByte(text, '/')
	if colon := strings.IndexByte(text, ':'); scheme == "" && colon > 0 && (end < 0 || colon < end) {
		end = colon
	}
	if end <= 0 {
		return "", "", fmt.Errorf("it names no host")
	}
	host, rest = scheme+user+text[:end+1], text[end+1:]
	switch {
	case github && (scheme == "ssh://" || user != ""):
		host = "git@github.com:"
	case github:
		host = "https://github.com/"
	case scheme == "" && !strings.HasSuffix(host, ":"):
		host = "ssh://" + host
	}
	return host, rest, nil
}

// splitRepository splits the path of a repository from that of the directory in it.
func splitRepository(text string, local bool) (repository, dir string) {
	if at := strings.Index(text, "_git/"); at >= 0 {
		at += len("_git/")
		name, dir, _ := strings.Cut(text[at:], "/")
		return text[:at] + name, dir
	}
	if at := strings.Index(text, "//"); at >= 0 {
		return text[:at], text[at+2:]
	}
	if at := strings.Index(text, ".git"); at >= 0 {
		return text[:at+len(".git")], text[at+len(".git"):]
	}
	if local {
		return text, ""
	}
	if parts := strings.SplitN(text, "/", 3); len(parts) == 3 {
		return parts[0] + "/" + parts[1], parts[2]
	} else if len(parts) == 2 {
		return text, ""
	}
	return "", ""
}

// remoteRoot is where the files of a commit are found: a name that no directory of the repository has by chance, and
// that says in messages where a file comes from.
func remoteRoot(address, commit string) string {
	_, name, found := strings.Cut(address, "://")
	if !found {
		name = address
	}
	name = strings.TrimPrefix(strings.ReplaceAll(name, ":", "/"), "git@")
	return strings.TrimPrefix(path.Clean("/"+name), "/") + "@" + commit
}

// resolveRemote finds the directory that a reference to another repository means, at the commit that is locked.
func (g *Graph) resolveRemote(k *kustomization, m mention) error {
	a, err := parseRemote(m.value)
	switch {
	case m.kind != fileOrDirectory && (m.kind != componentDirectory || a.isFile):
		k.fail(m, "%q is remote, and nothing is downloaded while a commit is read; copy its content into the repository", m.value)
		return nil
	case !a.isFile && isRemote(m.value) && manifestName.MatchString(m.value):
		k.fail(m, "%q is a remote file, which is not fetched; download it into the repository, and refer to the copy", m.value)
		return nil
	case err != nil:
		k.fail(m, "%q cannot be a remote base: %v", m.value, err)
		return nil
	}
	commit := a.ref
	if !lockfile.IsCommit(commit) {
		commit = g.remotes.Lock.Commit(a.url, a.ref)
		k.locked = true
	}
	use := RemoteBase{Base: lockfile.Base{URL: a.url, Ref: a.ref, Commit: commit}}
	if commit == "" {
		g.uses = append(g.uses, use)
		k.fail(m, "%q is a remote base that is not locked; run gitfleet lock, and commit %s", m.value, lockfile.Name)
		return nil
	}
	root := remoteRoot(a.url, commit)
	if !g.tree.Mounted(root) {
		files, err := g.files(a.url, commit)
		if use.Missing = err != nil; err == nil {
			g.tree.Mount(root, files)
		}
		g.uses = append(g.uses, use)
		if err != nil {
			k.fail(m, "%q, at commit %s, is not in the cache: %v", m.value, commit, err)
			return nil
		}
	} else {
		g.uses = append(g.uses, use)
	}
	dir := path.Join(root, a.dir)
	if a.isFile {
		return g.resolveRemoteFile(k, m, a, dir)
	}
	for _, file := range FileNames {
		if ok, err := g.tree.IsFile(path.Join(dir, file)); err != nil {
			return err
		} else if ok {
			k.dirs = append(k.dirs, dir)
			k.remotes = append(k.remotes, remoteDir{m.value, m.line, root, dir})
			return nil
		}
	}
	k.fail(m, "%s at commit %s has no %s in directory %s; correct the address", a.url, commit, FileNames[0], a.dir)
	return nil
}

// resolveRemoteFile takes a file of another repository as a directory that has nothing else: kustomize reads files only below the
// directory of a kustomization.
func (g *Graph) resolveRemoteFile(k *kustomization, m mention, a remoteAddress, name string) error {
	is, err := g.tree.IsFile(name)
	if err != nil {
		return err
	}
	if !is {
		k.fail(m, "%s has no file %s at %s; correct the address", a.url, a.dir, a.ref)
		return nil
	}
	dir := name + "@"
	if err := g.tree.MountFile(dir, name); err != nil {
		return err
	}
	k.dirs = append(k.dirs, dir)
	k.remotes = append(k.remotes, remoteDir{m.value, m.line, dir, dir})
	return nil
}

func (g *Graph) files(url, commit string) (fs.FS, error) {
	if g.remotes.Files == nil {
		return nil, fmt.Errorf("nothing is fetched here")
	}
	return g.remotes.Files(url, commit)
}

// Uses are the remote bases of all kustomizations, each once.
func (g *Graph) Uses() []RemoteBase {
	all := slices.Clone(g.uses)
	slices.SortFunc(all, func(a, b RemoteBase) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}

// replaceRemotes replaces the references to remote bases by such to the directories in which a build finds them.
func (k *kustomization) replaceRemotes() {
	if len(k.remotes) == 0 {
		return
	}
	replace := func(list []string) []string {
		list = slices.Clone(list)
		for i, value := range list {
			if n := slices.IndexFunc(k.remotes, func(r remoteDir) bool { return r.value == value }); n >= 0 {
				relative, _ := filepath.Rel("/"+k.dir, "/"+k.remotes[n].dir) // both are absolute
				if list[i] = relative; !strings.HasPrefix(relative, "../") {
					list[i] = "./" + relative
				}
			}
		}
		return list
	}
	k.spec.Resources, k.spec.Components = replace(k.spec.Resources), replace(k.spec.Components)
	//lint:ignore SA1019 kustomize still reads it, and so must we
	k.spec.Bases = replace(k.spec.Bases)
}
