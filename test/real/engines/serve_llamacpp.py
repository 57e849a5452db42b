"""Serves a model with the server of llama.cpp until it is ended: serve_llamacpp.py MODEL PORT ALIAS [API_KEY]."""
import sys
import threading

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.port = int(sys.argv[2])
params.model_alias = {sys.argv[3]}
params.api_keys = sys.argv[4:]
params.n_ctx = 2048
params.n_parallel = 4
# As llama-server does without -np.
params.kv_unified = True
params.cpuparams.n_threads = 1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
threading.Event().wait()
