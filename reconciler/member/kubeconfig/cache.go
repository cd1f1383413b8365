package kubeconfig

import (
	"io/fs"
	"os"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A cache caches kubeconfigs by file. It is safe for concurrent use; the results must not be
// changed.
type cache struct {
	mu   sync.Mutex
	read map[string]*readFile
}

type readFile struct {
	info   fs.FileInfo
	config *clientcmdapi.Config

	// clients has the *rest.Config that was converted from it for a context, by the name of the context.
	clients sync.Map
}

// client returns the client configuration of a context. The first successful call of convert decides what all calls return. Convert may
// read files on a file system that does not answer, which delays callers of this context only.
func (r *readFile) client(context string, convert func() (*rest.Config, error)) (*rest.Config, error) {
	if known, ok := r.clients.Load(context); ok {
		return known.(*rest.Config), nil
	}
	cfg, err := convert()
	if err != nil {
		return nil, err
	}
	known, _ := r.clients.LoadOrStore(context, cfg)
	return known.(*rest.Config), nil
}

// opening limits how many files are open at a time: thousands of members load theirs at once. A file whose opening blocks, on a
// file system that does not answer, delays no others as long as there are few of them.
var opening = make(chan struct{}, 64)

// load reads a kubeconfig unless its file is unchanged, and resolves the paths in it. A nil
// receiver always reads.
func (k *cache) load(path string) (*readFile, error) {
	opening <- struct{}{}
	defer func() { <-opening }()
	if k != nil { // without opening it, since thousands of members check their credentials every few seconds
		if info, err := os.Stat(path); err == nil {
			k.mu.Lock()
			known := k.unchanged(path, info)
			k.mu.Unlock()
			if known != nil {
				return known, nil
			}
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		if known := k.unchanged(path, info); known != nil { // another member has read it in the meantime
			return known, nil
		}
		delete(k.read, path)
	}
	cfg, err := decodeFile(f, path)
	if err == nil {
		err = clientcmd.ResolveLocalPaths(cfg)
	}
	if err != nil {
		return nil, err
	}
	file := &readFile{info: info, config: cfg}
	if k != nil {
		k.read[path] = file
	}
	return file, nil
}

// unchanged returns what was read of a file if the file is the same since, and nil otherwise. Its mode must be the same, too: without the
// permission to read, it is read again, which fails. The caller holds the lock.
func (k *cache) unchanged(path string, now fs.FileInfo) *readFile {
	was, known := k.read[path]
	if !known || !os.SameFile(was.info, now) || !was.info.ModTime().Equal(now.ModTime()) || was.info.Size() != now.Size() || was.info.Mode() != now.Mode() {
		return nil
	}
	return was
}
