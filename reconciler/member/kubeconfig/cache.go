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

	mu sync.Mutex
	// clients are the client configurations made of it, by context.
	clients map[string]*rest.Config
}

// client returns the client configuration of a context, which make makes at the first call that succeeds. make may read files
// that do not answer, and delays no other context.
func (r *readFile) client(context string, make func() (*rest.Config, error)) (*rest.Config, error) {
	r.mu.Lock()
	made := r.clients[context]
	r.mu.Unlock()
	if made != nil {
		return made, nil
	}
	cfg, err := make()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if made := r.clients[context]; made != nil {
		return made, nil
	}
	r.clients[context] = cfg
	return cfg, nil
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
	file := &readFile{info: info, config: cfg, clients: map[string]*rest.Config{}}
	if k != nil {
		k.read[path] = file
	}
	return file, nil
}
