package fleet

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// contexts returns the names of the contexts of a kubeconfig in the order of the
// file, which clientcmd does not keep.
func contexts(path string) ([]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Contexts []struct {
			Name string `json:"name"`
		} `json:"contexts"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var names []string
	for _, c := range file.Contexts {
		names = append(names, c.Name)
	}
	return names, nil
}
