# 添加以下参数来监控内存使用
--monitor-memory-continuously --memory-monitor-interval=0.5
