#!/bin/bash
export NCCL_TIMEOUT=3600  # 超时
export NCCL_SOCKET_NTHREADS=1  # 超时
