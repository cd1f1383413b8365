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
	f, err := os.Open(path) // Stat alone succeeds without the permission to read
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
		was, known := k.read[path]
		if known && os.SameFile(was.info, info) && was.info.ModTime().Equal(info.ModTime()) && was.info.Size() == info.Size() {
			return was, nil
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
