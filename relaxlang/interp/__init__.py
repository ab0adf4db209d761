"""(chapter)"""
