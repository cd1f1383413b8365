package kubeconfig

import (
	"io/fs"
	"os"
	"sync"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A cache caches kubeconfigs by file. It is safe for concurrent use; the results must not be
// changed.
type cache struct {
	mu   sync.Mutex
	read map[string]readFile
}

type readFile struct {
	info   fs.FileInfo
	config *clientcmdapi.Config
}

// load reads a kubeconfig unless its file is unchanged, and resolves the paths in it. A nil
// receiver always reads.
func (k *cache) load(path string) (*clientcmdapi.Config, error) {
	if k == nil {
		return loadFile(path)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	info, err := statReadable(path)
	if err != nil {
		delete(k.read, path)
		return loadFile(path)
	}
	was, known := k.read[path]
	if known && os.SameFile(was.info, info) && was.info.ModTime().Equal(info.ModTime()) && was.info.Size() == info.Size() {
		return was.config, nil
	}
	delete(k.read, path)
	cfg, err := loadFile(path)
	if err == nil {
		k.read[path] = readFile{info, cfg}
	}
	return cfg, err
}

// statReadable returns the information about a file, or the target of a symbolic link, if it
// may be read. Stat alone succeeds without the permission to read.
func statReadable(path string) (fs.FileInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Stat()
}

func loadFile(path string) (*clientcmdapi.Config, error) {
	cfg, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, err
	}
	return cfg, clientcmd.ResolveLocalPaths(cfg)
}
