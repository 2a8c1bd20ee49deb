module mihf.dev/tools/testsum

go 1.26.0
