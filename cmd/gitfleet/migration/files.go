package migration

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// With returns the files of a repository with those of the proposal.
func (p *Proposal) With(files fs.FS) fs.FS { return &extended{files, p.Files} }

// extended is a file system with further files. It is read with fs.ReadDir, fs.ReadFile and fs.Stat.
type extended struct {
	fs.FS
	added map[string]string
}

// ReadDir implements fs.ReadDirFS.
func (e *extended) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(e.FS, name)
	known := map[string]bool{}
	for _, entry := range all {
		known[entry.Name()] = true
	}
	added := false
	for file, text := range e.added {
		rest := file
		if name != "." {
			below := false
			if rest, below = strings.CutPrefix(file, name+"/"); !below {
				continue
			}
		}
		added = true
		first, _, isDir := strings.Cut(rest, "/")
		if known[first] {
			continue
		}
		known[first] = true
		info := addedInfo{name: first, size: int64(len(text))}
		if isDir {
			info.mode = fs.ModeDir
		}
		all = append(all, fs.FileInfoToDirEntry(info))
	}
	if err != nil && !added {
		return nil, err
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, nil
}

// ReadFile implements fs.ReadFileFS.
func (e *extended) ReadFile(name string) ([]byte, error) {
	if text, is := e.added[name]; is {
		return []byte(text), nil
	}
	return fs.ReadFile(e.FS, name)
}

// Stat implements fs.StatFS.
func (e *extended) Stat(name string) (fs.FileInfo, error) {
	if text, is := e.added[name]; is {
		return addedInfo{name: path.Base(name), size: int64(len(text))}, nil
	}
	return fs.Stat(e.FS, name)
}

// addedInfo describes a file of a proposal.
type addedInfo struct {
	name string
	size int64
	mode fs.FileMode
}

// Name implements fs.FileInfo.
func (i addedInfo) Name() string { return i.name }

// Size implements fs.FileInfo.
func (i addedInfo) Size() int64 { return i.size }

// Mode implements fs.FileInfo.
func (i addedInfo) Mode() fs.FileMode { return i.mode }

// ModTime implements fs.FileInfo.
func (i addedInfo) ModTime() time.Time { return time.Time{} }

// IsDir implements fs.FileInfo.
func (i addedInfo) IsDir() bool { return i.mode.IsDir() }

// Sys implements fs.FileInfo.
func (i addedInfo) Sys() any { return nil }
