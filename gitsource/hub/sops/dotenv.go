package sops

import (
	"errors"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decryptDotenv decrypts a file of lines KEY=VALUE, in which the metadata has such lines as well.
func decryptDotenv(name string, data []byte, keys Keys) (*File, error) {
	metadata, nodes := &yaml.Node{Kind: yaml.MappingNode}, 0
	lines := strings.Split(string(data), "\n")
	for _, line := range lines {
		if key, value, ok := strings.Cut(line, "="); ok {
			if key, is := strings.CutPrefix(key, "sops_"); is {
				if nodes += insert(metadata, strings.Split(key, "__"), strings.ReplaceAll(value, `\n`, "\n")); nodes > maxNodes {
					return nil, errors.New("its metadata has more than SOPS writes")
				}
			}
		}
	}
	d, _, err := newDecrypter(name, metadata, keys)
	if err != nil {
		return nil, err
	}
	for i, line := range lines {
		key, value, ok := strings.Cut(line, "=")
		switch {
		case strings.HasPrefix(line, "#") || !ok:
			if isEncrypted(strings.TrimPrefix(line, "#")) {
				lines[i] = ""
			}
			continue
		case strings.HasPrefix(key, "sops_"):
			lines[i] = ""
			continue
		}
		if !isEncrypted(value) {
			if !d.onlyEncrypted {
				d.mac.Write([]byte(strings.ReplaceAll(value, `\n`, "\n")))
			}
			continue
		}
		v, err := open(value, d.key, key+":")
		if err != nil {
			return nil, err
		}
		d.mac.Write([]byte(v.text))
		d.values = append(d.values, v.text)
		lines[i] = key + "=" + strings.ReplaceAll(v.text, "\n", `\n`)
	}
	if err := d.checkMAC(); err != nil {
		return nil, err
	}
	return &File{Text: []byte(strings.Join(lines, "\n")), Values: d.values, Key: keyOf(d.key)}, nil
}

// insert sets a value of nested mappings and lists: list_0 is a step into the first item of a list, and map_KEY into a mapping.
// It returns how many nodes it has added.
func insert(n *yaml.Node, steps []string, value string) (added int) {
	for _, step := range steps {
		if added > maxNodes {
			return added
		}
		if index, is := strings.CutPrefix(step, "list_"); is {
			i, err := strconv.Atoi(index)
			if err != nil || i < 0 || i >= maxRecipients {
				return added
			}
			n.Kind = yaml.SequenceNode
			for ; len(n.Content) <= i; added++ {
				n.Content = append(n.Content, &yaml.Node{Kind: yaml.MappingNode})
			}
			n = n.Content[i]
			continue
		}
		key := strings.TrimPrefix(step, "map_")
		next := field(n, key)
		if next == nil {
			next = &yaml.Node{Kind: yaml.MappingNode}
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, next)
			added++
		}
		n = next
	}
	n.Kind, n.Value = yaml.ScalarNode, value
	return added
}

// maxNodes limits the metadata of a file of lines: a line of a few bytes may add a hundred nodes for each step of its key.
const maxNodes = 10_000
