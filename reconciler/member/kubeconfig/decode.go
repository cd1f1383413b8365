package kubeconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// maxFile is the maximum size of a kubeconfig in a file, which may have the contexts of thousands of members,
// and maxSecret that of one in a Secret, with its aliases expanded. maxDepth is the maximum depth of aliases.
const (
	maxFile   = 64 << 20
	maxSecret = 1 << 20
	maxDepth  = 100
)

// decodeFile reads a kubeconfig from an open file.
func decodeFile(f io.Reader, path string) (*clientcmdapi.Config, error) {
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	cfg, err := decode(text, maxFile)
	if err != nil {
		return nil, err
	}
	for _, c := range cfg.Clusters { // what it names is beside it
		c.LocationOfOrigin = path
	}
	for _, u := range cfg.AuthInfos {
		u.LocationOfOrigin = path
	}
	return cfg, nil
}

// A sizeError is the error of a kubeconfig that is larger than most bytes.
type sizeError struct {
	most int
	how  string
}

func (e *sizeError) Error() string {
	return fmt.Sprintf("it is larger than %d MiB%s", e.most>>20, e.how)
}

// decode decodes a kubeconfig, unless it becomes larger than most bytes: an alias of YAML stands for a text of
// any length, and the decoder writes it out wherever it is used.
func decode(text []byte, most int) (*clientcmdapi.Config, error) {
	if len(text) > most {
		return nil, &sizeError{most, ""}
	}
	if bytes.IndexByte(text, '*') >= 0 { // without it there is no alias, and base64 has none
		var root yaml.Node
		if err := yaml.Unmarshal(text, &root); err != nil {
			return nil, errors.New("it is not valid YAML") // the error may quote a credential
		}
		if left := most; !fits(&root, &left, 0) {
			return nil, &sizeError{most, " with its YAML aliases expanded, or these are nested: write the values out"}
		}
	}
	return clientcmd.Load(text)
}

// fits subtracts the size of a node with its aliases expanded from left, and reports whether there was enough.
func fits(n *yaml.Node, left *int, depth int) bool {
	if *left -= 1 + len(n.Value); *left < 0 || depth > maxDepth {
		return false
	}
	if n.Alias != nil {
		return fits(n.Alias, left, depth+1)
	}
	for _, c := range n.Content {
		if !fits(c, left, depth+1) {
			return false
		}
	}
	return true
}
